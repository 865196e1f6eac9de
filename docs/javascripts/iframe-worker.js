// Search on pages opened as files. Browsers start no worker from file:, so the theme's search worker runs in a hidden
// frame instead. The theme looks for the global IFrameWorker; its own default is a script from another host.
if (location.protocol === "file:") {
  const load = (page, url) =>
    new Promise((resolve, reject) => {
      const script = page.createElement("script");
      script.onload = resolve;
      script.onerror = reject;
      script.src = url;
      page.body.append(script);
    });

  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.scope = frame.contentWindow;
      this.scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.scope.importScripts = (...urls) =>
        urls.reduce((before, next) => before.then(() => load(this.scope.document, next)), Promise.resolve());
      this.loaded = load(this.scope.document, new URL(url, document.baseURI).href);
    }

    postMessage(data) {
      this.loaded.then(() => this.scope.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.scope.frameElement.remove();
    }

    set onmessage(listener) {
      this.addEventListener("message", listener);
    }
  };
  window.Worker = window.IFrameWorker;
}
