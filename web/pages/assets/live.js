// Adds the lines of a running deployment as they come, and reads the page again when what it shows has changed.
"use strict";

// follow appends what comes to the log, and stays at the end if the reader is there.
function follow(log) {
  const source = new EventSource(log.dataset.live);
  const element = (name, className, text) => {
    const e = document.createElement(name);
    if (className) e.className = className;
    if (text !== undefined) e.textContent = text;
    return e;
  };
  const group = (name) => {
    const last = log.lastElementChild;
    if (!name) return log;
    if (last && last.dataset.step === name) return last;
    const details = element("details", "step busy");
    details.dataset.step = name;
    details.open = true;
    const summary = element("summary");
    summary.append(element("span", "", name), " ", element("span", "t", ""));
    details.append(summary);
    log.append(details);
    return details;
  };
  source.onmessage = (message) => {
    const data = JSON.parse(message.data);
    const atEnd = window.innerHeight + window.scrollY >= document.body.scrollHeight - 80;
    const into = group(data.g);
    for (const line of data.l) {
      const div = element("div", "line " + (line.c || ""));
      div.id = "L" + line.n;
      const link = element("a", "", String(line.n));
      link.href = "#L" + line.n;
      div.append(link, element("i", "", line.at), element("span", "", line.t));
      into.append(div);
    }
    if (data.d && into !== log) {
      into.className = "step " + data.d;
      into.querySelector(".t").textContent = data.s || "";
      into.open = data.d === "bad";
    }
    if (atEnd) window.scrollTo(0, document.body.scrollHeight);
  };
  source.addEventListener("end", () => {
    source.close();
    location.reload();
  });
}

// refresh puts the page as it is now in the place of what is shown, unless somebody types there.
async function refresh() {
  const main = document.getElementById("main");
  if (main.contains(document.activeElement) && document.activeElement.matches("input, textarea, select")) return;
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const open = [...main.querySelectorAll("details[open] > summary")].map((s) => s.textContent);
  const focus = document.activeElement && document.activeElement.getAttribute("href");
  main.replaceChildren(...page.getElementById("main").childNodes);
  for (const s of main.querySelectorAll("details > summary")) if (open.includes(s.textContent)) s.parentElement.open = true;
  if (focus && document.activeElement === document.body) {
    const again = [...main.querySelectorAll("a")].find((a) => a.getAttribute("href") === focus);
    if (again) again.focus({ preventScroll: true });
  }
}

const log = document.querySelector("#log[data-live]");
if (log) follow(log);
if (document.body.dataset.changes) new EventSource(document.body.dataset.changes).onmessage = refresh;
