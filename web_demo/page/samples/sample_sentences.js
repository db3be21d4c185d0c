// Sample sentences in the languages of the bundled model. The nth sentence means the same in every language: they are
// lines of the model's corpus with their slots filled, and what its clause grammar composes.

/** @type {Readonly<Record<string, readonly string[]>>} */
const SENTENCES = {
  en: [
    "Let's move the launch to Friday.",
    "The contract isn't ready yet because Anna is out sick.",
    "What time works best for you?",
    "Let's take a short break and continue at 10:30 AM.",
    "How long will the data migration take?",
    "Could you repeat that, please?",
    "We're running out of time.",
  ],
  ja: [
    "ローンチを金曜日に変更しましょう。",
    "Annaさんが病気で休んでいるため、契約書はまだできていません。",
    "何時がご都合よろしいですか？",
    "少し休憩して、午前10時30分に再開しましょう。",
    "データ移行はどのくらいかかりますか？",
    "もう一度お願いできますか？",
    "時間がなくなってきました。",
  ],
  es: [
    "Pasemos el lanzamiento al viernes.",
    "El contrato aún no está listo porque Anna está de baja por enfermedad.",
    "¿A qué hora le viene mejor?",
    "Hagamos una pausa corta y sigamos a las 10:30.",
    "¿Cuánto tiempo durará la migración de datos?",
    "¿Podría repetirlo, por favor?",
    "Se nos acaba el tiempo.",
  ],
  de: [
    "Verschieben wir die Markteinführung auf Freitag.",
    "Der Vertrag ist noch nicht fertig, weil Anna krank ist.",
    "Welche Uhrzeit passt Ihnen am besten?",
    "Machen wir eine kurze Pause und um 10:30 Uhr weiter.",
    "Wie lange wird die Datenmigration dauern?",
    "Könnten Sie das bitte wiederholen?",
    "Uns läuft die Zeit davon.",
  ],
  fr: [
    "Déplaçons le lancement à vendredi.",
    "Le contrat n'est pas encore prêt, car Anna est en arrêt maladie.",
    "Quelle heure vous convient le mieux ?",
    "Faisons une courte pause et reprenons à 10 h 30.",
    "Combien de temps durera la migration de données ?",
    "Pourriez-vous répéter, s'il vous plaît ?",
    "Il ne nous reste presque plus de temps.",
  ],
  zh: [
    "我们把发布改到星期五吧。",
    "因为Anna请了病假，合同还没准备好。",
    "您几点最方便？",
    "我们休息一会儿，上午10点30分继续。",
    "数据迁移要多长时间？",
    "麻烦您再说一遍，好吗？",
    "我们的时间不多了。",
  ],
};

/**
 * @param {string} lang A language tag.
 * @returns {readonly string[]} Empty for other languages.
 */
export function sampleSentences(lang) {
  return SENTENCES[lang] ?? [];
}
