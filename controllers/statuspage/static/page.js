// Keeps an open page up to date: takes the pieces that the server sends and puts them in place of the old ones.
// Without it the page is whole, and its link "Refresh" does the same.
"use strict";
(() => {
  const address = document.body.dataset.events;
  const connection = document.getElementById("connection");
  if (!address || !connection || !window.EventSource) return;
  let ahead = Number(document.body.dataset.now) - Date.now() / 1000;
  let pictured = 0, picture = 0;

  const span = (seconds) => {
    const whole = Math.max(0, Math.floor(seconds));
    for (const [unit, name, part, rest] of [[86400, "d", 3600, "h"], [3600, "h", 60, "m"], [60, "m", 1, "s"]]) {
      if (whole >= unit) {
        const small = Math.floor((whole % unit) / part);
        return `${Math.floor(whole / unit)}${name}` + (small ? `${small}${rest}` : "");
      }
    }
    return `${whole}s`;
  };
  const now = () => Date.now() / 1000 + ahead;
  const say = (element, text) => { if (element.textContent !== text) element.textContent = text; };
  const tick = () => {
    for (const it of document.querySelectorAll("[data-until]")) {
      const left = Number(it.dataset.until) - now();
      say(it, left > 0 ? `${span(left)} left` : "time is up");
    }
    for (const it of document.querySelectorAll("[data-since]")) say(it, span(now() - Number(it.dataset.since)));
  };

  const made = (html) => {
    const box = document.createElement("template");
    box.innerHTML = html.trim();
    return box.content.firstElementChild;
  };
  const mark = (within) => {
    const at = document.activeElement;
    if (!at || !within.contains(at)) return null;
    return at.id ? `#${CSS.escape(at.id)}` : at.matches("a[href]") ? `a[href="${CSS.escape(at.getAttribute("href"))}"]` : null;
  };
  const put = (id, html) => {
    const old = document.getElementById(id), fresh = made(html);
    if (!old || !fresh) return;
    const focused = mark(old);
    old.replaceWith(fresh);
    if (focused) {
      const again = fresh.matches(focused) ? fresh : fresh.querySelector(focused);
      (again || document.getElementById("main")).focus({ preventScroll: true });
    }
  };
  const lines = (order, rows) => {
    const body = document.getElementById("rows");
    if (!body) return;
    for (const [id, html] of Object.entries(rows)) {
      if (document.getElementById(id)) put(id, html);
      else body.append(made(html));
    }
    if (!order) return;
    const wanted = new Set(order);
    for (const it of [...body.children]) if (!wanted.has(it.id)) it.remove();
    const focused = document.activeElement;
    let at = body.firstElementChild;
    for (const id of order) {
      if (at && at.id === id) at = at.nextElementSibling;
      else {
        const moved = document.getElementById(id);
        if (moved) body.insertBefore(moved, at);
      }
    }
    if (focused && focused !== document.activeElement && document.contains(focused)) focused.focus({ preventScroll: true });
  };
  const moment = () => {
    for (const it of document.querySelectorAll("[data-moment]")) say(it, new Date(now() * 1000).toISOString().slice(11, 19));
  };
  // Said aloud to those who do not see it: an element that is always there, since a new one is not read out.
  const announced = () => {
    const about = document.getElementById("about"), banner = document.getElementById("banner");
    if (about) return `${about.dataset.state}, ${document.getElementById("count").textContent}`;
    return banner ? banner.textContent.trim() : "";
  };
  let before = announced();
  const tell = () => {
    const text = announced(), news = document.getElementById("news");
    const state = (words) => words.split(",")[0];
    if (news && state(text) !== state(before)) say(news, text);
    before = text;
  };
  const draw = () => {
    const image = document.getElementById("timeline");
    if (!image || picture) return;
    picture = setTimeout(() => {
      picture = 0;
      pictured += 1;
      image.src = `${image.dataset.src}?again=${pictured}`;
    }, 5500);
  };

  const source = new EventSource(address);
  const state = (word, text) => { connection.dataset.state = word; say(connection, text); };
  source.addEventListener("open", () => state("live", "Live."));
  source.addEventListener("error", () => {
    const over = source.readyState === EventSource.CLOSED;
    state("lost", `Connection lost: what is shown may be old. ${over ? "Refresh to go on." : "Trying again…"}`);
  });
  source.addEventListener("view", (event) => {
    const news = JSON.parse(event.data);
    ahead = news.now - Date.now() / 1000;
    for (const [id, html] of Object.entries(news.parts || {})) put(id, html);
    lines(news.order, news.rows || {});
    if (news.title) document.title = news.title;
    if (news.parts && news.parts.about) draw();
    moment();
    tick();
    tell();
    document.body.dataset.seen = String(Number(document.body.dataset.seen || 0) + 1);
  });
  source.addEventListener("beat", (event) => {
    ahead = Number(event.data) - Date.now() / 1000;
    moment();
  });
  source.addEventListener("end", () => {
    source.close();
    location.reload();
  });
  addEventListener("pagehide", () => source.close());
  setInterval(tick, 1000);
})();
