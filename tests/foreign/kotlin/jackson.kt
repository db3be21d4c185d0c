// Stands for jackson-module-kotlin, which is in no registry that `make foreign` uses.
package com.fasterxml.jackson.module.kotlin

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.introspect.Annotated
import com.fasterxml.jackson.databind.introspect.AnnotatedConstructor
import com.fasterxml.jackson.databind.introspect.AnnotatedMember
import com.fasterxml.jackson.databind.introspect.AnnotatedParameter
import com.fasterxml.jackson.databind.introspect.JacksonAnnotationIntrospector
import java.lang.reflect.Constructor

/** Makes data classes by the names of their parameters. */
private class Parameters : JacksonAnnotationIntrospector() {
    private fun constructor(of: Annotated) = (of as? AnnotatedConstructor)?.annotated?.takeIf(::isOfDataClass)

    private fun isOfDataClass(each: Constructor<*>) =
        each.parameterCount > 0 && each.declaringClass.methods.any { it.name == "component1" } && !each.isSynthetic

    override fun findImplicitPropertyName(member: AnnotatedMember): String? = when (member) {
        is AnnotatedParameter -> constructor(member.owner)?.let { it.parameters[member.index].name }
        else -> super.findImplicitPropertyName(member)
    }

    @Deprecated("By Jackson")
    override fun hasCreatorAnnotation(each: Annotated) = constructor(each) != null || super.hasCreatorAnnotation(each)
}

fun jacksonObjectMapper(): ObjectMapper = ObjectMapper().setAnnotationIntrospector(Parameters())

inline fun <reified T> ObjectMapper.readValue(text: String): T = readValue(text, T::class.java)
