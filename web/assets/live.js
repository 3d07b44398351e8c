// Appends the lines of a running deployment as they come, and stays at the end if the reader is there.
"use strict";
const log = document.getElementById("log");
const source = log && log.dataset.live ? new EventSource(log.dataset.live) : null;
if (source) {
  source.onmessage = (message) => {
    const atEnd = window.innerHeight + window.scrollY >= document.body.scrollHeight - 60;
    for (const line of JSON.parse(message.data)) {
      const div = document.createElement("div");
      div.className = "line " + (line.c || "");
      div.textContent = line.t;
      log.append(div);
    }
    if (atEnd) window.scrollTo(0, document.body.scrollHeight);
  };
  source.addEventListener("end", () => {
    source.close();
    location.reload();
  });
}
