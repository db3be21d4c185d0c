// A client in Kotlin, written from docs/write-a-client.md, and its driver for `gateway conformance`. What it gives to
// the application are quicktype's types; it needs Jackson and nothing else.

import com.fasterxml.jackson.databind.DeserializationFeature
import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode
import java.net.URI
import java.net.http.HttpClient
import java.net.http.WebSocket
import java.net.http.WebSocketHandshakeException
import java.util.concurrent.CompletableFuture
import java.util.concurrent.CompletableFuture.completedFuture
import java.util.concurrent.CompletionStage
import java.util.concurrent.Executors
import java.util.concurrent.TimeUnit.MILLISECONDS
import java.util.concurrent.TimeUnit.SECONDS
import kotlin.random.Random
import kotlin.system.exitProcess
import quicktype.*

private class Final(val message: UtteranceFinal) {
    var sent = false
    var notBeforeMs = 0L
    var suspect = false
}

/** All of it happens in one thread. The token is asked for before each connection, and at `token.expiring`. */
class Client(address: String, options: JsonNode, private val token: () -> String?, private val show: (Any) -> Unit) {
    private val address = URI("${address.replaceFirst("http", "ws")}/v1/stream")
    private val start: ObjectNode = options.deepCopy<ObjectNode>().put("type", "session.start")
    private val loop = Executors.newSingleThreadScheduledExecutor { Thread(it).apply { isDaemon = true } }
    private val http = HttpClient.newBuilder().build()
    private var socket: WebSocket? = null
    private var sending: CompletableFuture<*> = completedFuture(null)

    private var isOpen = false
    private var isOver = false // closed for good
    private var isLast = false // whatever the close code, it is for good
    private var isDraining = false
    private var isEnding = false
    private var endIsSent = false
    private var isChanged = false // the languages, since the start was sent
    private var attempt = 0
    private var openedMs = 0L
    private var retryAfterMs = 0L
    private var heardMs = 0L

    private var session: SessionStarted? = null
    private var offset = 0L
    private val finals = ArrayDeque<Final>()
    private val revisions = HashMap<String, Long>()
    private val partials = LinkedHashMap<String, String>() // what is to be sent
    private val sentPartials = HashMap<String, Pair<String, Long>>() // what was sent, and when
    private val shown = HashSet<List<Any?>>()
    private val replaced = HashMap<Pair<String, String>, String?>()

    init {
        // A newer gateway sends more.
        mapper.configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false)
        loop.scheduleWithFixedDelay(::watch, 1, 1, SECONDS)
        soon(::connect)
    }

    private fun soon(action: () -> Unit) = loop.execute {
        try {
            action()
        } catch (fault: Throwable) {
            fault.printStackTrace()
            exitProcess(1)
        }
    }

    // ---- what the application says

    fun partial(id: String, text: String) = soon {
        partials[id] = text
        flush()
    }

    fun final(id: String, text: String, replaces: String?) = soon {
        partials.remove(id)
        if (text.isBlank() && replaces == null) return@soon giveUp(id)
        val type = UtteranceFinalType.UtteranceFinal
        val message = UtteranceFinal(type = type, id = id, rev = revise(id), text = text, replaces = replaces)
        if (finals.none { it.message.id == id }) finals.add(Final(message))
        flush()
    }

    fun cancel(id: String) = soon {
        partials.remove(id)
        finals.removeIf { it.message.id == id && !it.sent }
        if (isOpen) send(mapper.createObjectNode().put("type", "utterance.cancel").put("id", id))
    }

    fun read(languages: JsonNode) = soon {
        start.set<JsonNode>("reads", languages)
        isChanged = true
        flush()
    }

    fun end() = soon {
        isEnding = true
        flush()
    }

    private fun revise(id: String): Long = revisions.merge(id, 1, Long::plus)!!

    /** What was begun will not be final. */
    private fun giveUp(id: String) {
        if (sentPartials.remove(id) != null && isOpen) {
            send(mapper.createObjectNode().put("type", "utterance.cancel").put("id", id))
        }
    }

    // ---- the connection

    private fun connect() {
        val given = token()
        val builder = http.newWebSocketBuilder().subprotocols("translation.v1.json")
        if (given != null) builder.header("Authorization", "Bearer $given")
        val listener = Listener()
        builder.buildAsync(address, listener).whenComplete { opened, error ->
            soon {
                if (opened != null) {
                    socket = opened
                    sendStart()
                } else {
                    val refusal = (error.cause ?: error) as? WebSocketHandshakeException
                    if (refusal?.response?.statusCode() in setOf(400, 401, 403, 404)) close() else reconnect()
                }
            }
        }
    }

    private inner class Listener : WebSocket.Listener {
        private val text = StringBuilder()

        override fun onText(from: WebSocket, data: CharSequence, last: Boolean): CompletionStage<*>? {
            text.append(data)
            if (last) {
                val message = mapper.readTree(text.toString())
                text.clear()
                soon { if (from === socket) hear(message) }
            }
            from.request(1)
            return null
        }

        override fun onClose(from: WebSocket, code: Int, reason: String): CompletionStage<*>? {
            soon { lost(from, code) }
            return null
        }

        override fun onError(from: WebSocket, error: Throwable) = soon { lost(from, 1006) }
    }

    private fun lost(from: WebSocket, code: Int) {
        if (from !== socket) return
        socket = null
        if (code == 1000 || code in 4500..4999 || isLast) close() else reconnect()
    }

    private fun reconnect() {
        if (openedMs > 0 && now() - openedMs > 15_000) attempt = 0
        openedMs = 0
        isOpen = false
        isDraining = false
        endIsSent = false
        finals.forEach { it.sent = false }
        sentPartials.replaceAll { _, (_, sentMs) -> "" to sentMs }
        val bound = minOf(10_000L, 250L shl minOf(attempt++, 10))
        loop.schedule(::connect, maxOf(Random.nextLong(bound), retryAfterMs), MILLISECONDS)
        retryAfterMs = 0
    }

    private fun close() {
        if (isOver) return
        isOver = true
        isOpen = false
        socket?.abort()
        socket = null
        show(mapper.createObjectNode().put("type", "closed"))
    }

    /** A dead network says nothing. */
    private fun watch() {
        val silentMs = now() - heardMs
        if (isOpen && silentMs > 30_000) {
            socket?.abort()
            socket = null
            reconnect()
        } else if (isOpen && silentMs > 20_000) {
            send(mapper.createObjectNode().put("type", "ping"))
        }
    }

    private fun sendStart() {
        heardMs = now()
        session?.let {
            if (it.record == false) start.put("record", false)
            start.putObject("resume").put("session", it.session).put("epoch", it.epoch).put("offset", offset)
        }
        send(start)
        isChanged = false
    }

    private fun send(message: Any) {
        val to = socket ?: return
        val text = mapper.writeValueAsString(message)
        sending = sending.handle { _, _ -> }.thenCompose { to.sendText(text, true) }
    }

    /** Everything that is due, in order: a final waits for the one before it, anything else for all finals. */
    private fun flush() {
        if (!isOpen) return
        if (isChanged) {
            isChanged = false
            send(mapper.createObjectNode().put("type", "session.update").set<JsonNode>("reads", start["reads"]))
        }
        finals.firstOrNull()?.let {
            if (it.sent || isDraining) return
            if (it.notBeforeMs > now()) return later(it.notBeforeMs - now())
            it.sent = true
            return send(it.message)
        }
        for ((id, text) in partials.toList()) {
            val (last, lastMs) = sentPartials[id] ?: ("" to 0L)
            if (now() - lastMs < 250) {
                later(250 - (now() - lastMs))
                continue
            }
            partials.remove(id)
            if (text == last) continue
            sentPartials[id] = text to now()
            send(UtterancePartial(type = UtterancePartialType.UtterancePartial, id = id, rev = revise(id), text = text))
        }
        if (isEnding && !endIsSent) {
            endIsSent = true
            send(mapper.createObjectNode().put("type", "session.end"))
        }
    }

    private fun later(ms: Long) {
        loop.schedule(::flush, ms, MILLISECONDS)
    }

    // ---- what the gateway says

    private fun hear(message: JsonNode) {
        heardMs = now()
        if (message.path("offset").isNumber && isOpen) offset = maxOf(offset, message["offset"].asLong())
        when (message["type"].asText()) {
            "session.started" -> started(decode(message))
            "session.draining" -> isDraining = true
            "utterance.accepted" -> answered(decode<UtteranceAccepted>(message).id)
            "translation.final" -> decode<TranslationFinal>(message).let {
                if (isNew("final", it.participant, it.utterance, it.lang, it.rev)) show(it)
            }
            // It may be tried again, and fail again.
            "translation.failed" -> decode<TranslationFailed>(message).let {
                if (isNew("failed", it.participant, it.utterance, it.lang, it.offset)) show(it)
            }
            "utterance.cancelled" -> show(decode<UtteranceCancelled>(message))
            "utterance.replaced" -> replace(decode(message))
            "token.expiring" -> send(mapper.createObjectNode().put("type", "session.refresh").put("token", token()))
            "error" -> refused(decode(message))
        }
    }

    private fun started(started: SessionStarted) {
        if (session?.epoch != started.epoch) shown.clear()
        if (started.recovered != true) offset = started.offset
        session = started
        isOpen = true
        openedMs = now()
        flush()
    }

    private fun answered(id: String) {
        finals.removeIf { it.message.id == id }
        sentPartials.remove(id)
        flush()
    }

    private fun refused(error: Error) {
        if (error.code == "removed" || error.code == "meeting_ended") isLast = true
        val waitMs = error.retryAfterMS ?: 500
        val isRetryable = error.retryable == true
        val utterance = error.utterance
        val out = finals.firstOrNull()?.takeIf { it.sent }
        when {
            !isOpen -> if (isRetryable) loop.schedule(::sendStart, waitMs, MILLISECONDS) else close()
            utterance != null && out?.message?.id == utterance && isRetryable -> again(out, waitMs)
            utterance != null -> answered(utterance)
            error.code in setOf("invalid_message", "message_too_large") && out != null -> {
                if (out.suspect) return answered(out.message.id)
                out.suspect = true
                again(out, 0)
            }
            isRetryable -> retryAfterMs = waitMs
        }
    }

    private fun again(out: Final, waitMs: Long) {
        out.sent = false
        out.notBeforeMs = now() + waitMs
        flush()
    }

    private fun replace(message: UtteranceReplaced) {
        val standing = message.utterances.mapNotNull { standing(message.participant, it, message.by) }.distinct()
        standing.forEach { replaced[message.participant to it] = message.by }
        if (standing.isNotEmpty()) show(message.copy(utterances = standing))
    }

    /** What stands where an utterance stood; null: nothing, or `by` has replaced it before. */
    private tailrec fun standing(participant: String, id: String, by: String?): String? {
        val key = participant to id
        if (key !in replaced) return id
        val newer = replaced[key]
        return if (newer == null || newer == by) null else standing(participant, newer, by)
    }

    private fun isNew(kind: String, participant: String, utterance: String, lang: String, number: Long) =
        participant to utterance !in replaced && shown.add(listOf(kind, participant, utterance, lang, number))

    private fun now() = System.nanoTime() / 1_000_000
}

private inline fun <reified T> decode(message: JsonNode): T = mapper.treeToValue(message, T::class.java)

fun main() {
    var client: Client? = null
    for (line in generateSequence(::readlnOrNull)) {
        val command = mapper.readTree(line)
        val id = command.path("id").asText()
        val text = command.path("text").asText()
        when (command["do"].asText()) {
            "connect" -> {
                val tokens = command.path("tokens").map { it.asText() }.toMutableList()
                val token = { if (tokens.size > 1) tokens.removeAt(0) else tokens.firstOrNull() }
                val show = { event: Any -> println(mapper.writeValueAsString(event)); System.out.flush() }
                client = Client(command["address"].asText(), command["options"], token, show)
            }
            "partial" -> client?.partial(id, text)
            "final" -> client?.final(id, text, command["replaces"]?.asText())
            "cancel" -> client?.cancel(id)
            "update" -> client?.read(command["reads"])
            "end" -> client?.end()
        }
    }
    exitProcess(0)
}
