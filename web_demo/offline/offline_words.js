// The offline page's words, in the languages of the page. All in one file: without a connection none can be fetched.

export const WORDS = {
  en: {
    title: "The meeting cannot be reached",
    offline: "This device has no connection to the network.",
    silent: "This device has a network, but the gateway does not answer.",
    hint: "What is said and its translations come from the gateway, and nothing of them is stored here. The meeting opens by itself as soon as the gateway answers.",
    retry: "Try again",
  },
  ar: {
    title: "يتعذر الوصول إلى الاجتماع",
    offline: "هذا الجهاز غير متصل بالشبكة.",
    silent: "هذا الجهاز متصل بالشبكة، لكن البوابة لا تجيب.",
    hint: "يأتي ما يُقال وترجماته من البوابة، ولا يُخزَّن شيء منه هنا. يُفتح الاجتماع من تلقاء نفسه حالما تجيب البوابة.",
    retry: "المحاولة من جديد",
  },
  de: {
    title: "Das Meeting ist nicht erreichbar",
    offline: "Dieses Gerät ist nicht mit dem Netz verbunden.",
    silent: "Dieses Gerät hat ein Netz, aber das Gateway antwortet nicht.",
    hint: "Was gesagt wird und die Übersetzungen kommen vom Gateway, und nichts davon wird hier gespeichert. Das Meeting öffnet sich von selbst, sobald das Gateway antwortet.",
    retry: "Erneut versuchen",
  },
  es: {
    title: "No se puede acceder a la reunión",
    offline: "Este dispositivo no está conectado a la red.",
    silent: "Este dispositivo tiene red, pero la pasarela no responde.",
    hint: "Lo que se dice y sus traducciones vienen de la pasarela, y aquí no se guarda nada de ello. La reunión se abre sola en cuanto la pasarela responde.",
    retry: "Intentar de nuevo",
  },
  fr: {
    title: "La réunion est injoignable",
    offline: "Cet appareil n’est pas connecté au réseau.",
    silent: "Cet appareil a du réseau, mais la passerelle ne répond pas.",
    hint: "Ce qui est dit et ses traductions viennent de la passerelle, et rien n’en est conservé ici. La réunion s’ouvre d’elle-même dès que la passerelle répond.",
    retry: "Réessayer",
  },
  ja: {
    title: "会議に接続できません",
    offline: "この端末はネットワークに接続していません。",
    silent: "この端末はネットワークに接続していますが、ゲートウェイが応答しません。",
    hint: "発言と翻訳はゲートウェイから届き、この端末には何も保存されません。ゲートウェイが応答すると、会議は自動的に開きます。",
    retry: "もう一度試す",
  },
  zh: {
    title: "无法连接到会议",
    offline: "此设备没有连接网络。",
    silent: "此设备已连接网络，但网关没有响应。",
    hint: "发言及其翻译都来自网关，这里不保存任何内容。网关一有响应，会议就会自动打开。",
    retry: "重试",
  },
};
