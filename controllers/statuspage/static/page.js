// Keeps an open page up to date: takes the pieces that the server sends and puts them in place of the old ones.
// Without it the page is whole, and its link "Refresh" does the same.
"use strict";
(() => {
  const connection = document.getElementById("connection");
  if (!document.body.dataset.events || !connection || !window.EventSource) return;
  document.documentElement.classList.add("js");
  let ahead = Number(document.body.dataset.now) - Date.now() / 1000;
  let pictured = 0, picture = 0, source;

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
    for (const it of document.querySelectorAll("[data-rate]")) {
      const { cost, at, rate } = it.dataset;
      say(it, (Number(cost) + Math.max(0, now() - Number(at)) / 3600 * Number(rate)).toFixed(2));
    }
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
    for (const it of old.querySelectorAll("details[open]")) {
      const same = fresh.querySelector(`#${CSS.escape(it.id)}`);
      if (same) same.open = true;
    }
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
    const about = document.getElementById("about"), late = document.getElementById("late");
    if (about) return `${about.dataset.state}, ${document.getElementById("count").textContent}`;
    return late ? late.textContent.trim() : "";
  };
  let before = announced();
  const tell = () => {
    const text = announced(), news = document.getElementById("news");
    const state = (words) => words.split(",")[0];
    if (news && state(text) !== state(before)) say(news, text);
    before = text;
  };

  // No element is replaced between press and release of a pointer: the browser would send no click.
  let held = null, release = () => {};
  addEventListener("pointerdown", (event) => {
    if (event.isPrimary && !event.button && !held) held = new Promise((done) => { release = done; });
  }, true);
  for (const what of ["pointerup", "pointercancel", "pointermove", "keydown"]) {
    addEventListener(what, (event) => {
      if (held && (!event.buttons || what === "pointercancel")) setTimeout(() => { held = null; release(); });
    }, true);
  }

  // A link or form that stays on this kind of page: its pieces are put in place of those here.
  const pieces = ["cards", "summary", "columns", "rows", "empty", "pager", "history", "pods"];
  // Where the viewer goes, from the click on: a picture that is drawn again meanwhile must not end that.
  let visit = 0, target = location.href;
  const load = async (url, ids) => {
    const turn = visit, answer = await fetch(url).catch(() => null);
    const text = answer && answer.ok ? await answer.text() : "";
    await held;
    if (!text || turn !== visit) return turn === visit ? null : undefined;
    const next = new DOMParser().parseFromString(text, "text/html");
    for (const id of ids) {
      const it = next.getElementById(id);
      if (it) put(id, it.outerHTML);
    }
    return next;
  };
  const go = async (url, change) => {
    visit += 1;
    target = url;
    const next = await load(url, pieces);
    if (next === null) location.assign(url);
    if (!next) return;
    if (change) history[change](null, "", url);
    document.getElementById("refresh").href = url;
    for (const id of ["q", "namespace", "sort"]) {
      const field = document.getElementById(id), fresh = next.getElementById(id);
      if (field && fresh && field !== document.activeElement) field.value = fresh.value;
    }
    if (document.body.dataset.events !== next.body.dataset.events) {
      document.body.dataset.events = next.body.dataset.events;
      listen();
    }
  };
  addEventListener("popstate", () => go(location.href));
  const draw = () => {
    if (!document.getElementById("history") || picture) return;
    picture = setTimeout(async () => {
      picture = 0;
      pictured += 1;
      await load(target, document.getElementById("timeline") ? ["pods"] : ["history", "pods"]);
      const image = document.getElementById("timeline");
      if (image) image.src = `${image.dataset.src}${image.dataset.src.includes("?") ? "&" : "?"}again=${pictured}`;
    }, 5500);
  };
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a.soft"), copy = event.target.closest(".copy");
    if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      go(link.href, "pushState");
    }
    if (copy) {
      const word = copy.firstChild;
      navigator.clipboard.writeText(copy.dataset.copy).then(
        () => { word.data = "Copied"; say(document.getElementById("news"), "Copied"); },
        () => { word.data = "Not copied"; });
      setTimeout(() => { word.data = "Copy"; }, 2000);
    }
  });
  const filter = document.querySelector("form.filter");
  if (filter) {
    let typing = 0;
    const apply = (wait, names) => {
      clearTimeout(typing);
      typing = setTimeout(() => {
        const query = new URLSearchParams(location.search);
        query.delete("page");
        for (const name of names) {
          const value = filter.elements[name].value.trim();
          if (value) query.set(name, value);
          else query.delete(name);
        }
        go(`${filter.getAttribute("action")}${query.size ? `?${query}` : ""}`, "replaceState");
      }, wait);
    };
    const fields = ["q", "namespace"];
    filter.addEventListener("input", (event) => {
      const field = event.target;
      apply(field.tagName === "INPUT" ? 250 : 0, field.id === "sort" ? [...fields, "sort"] : fields);
    });
    filter.addEventListener("submit", (event) => { event.preventDefault(); apply(0, fields); });
  }
  // A stretch of the timeline that is drawn over becomes its window.
  let begun = null;
  const second = (image, event) => {
    const box = image.getBoundingClientRect(), { left, right, from, to } = image.dataset;
    const share = ((event.clientX - box.left) / box.width - Number(left)) / (Number(right) - Number(left));
    return Math.round(Number(from) + Math.min(1, Math.max(0, share)) * (Number(to) - Number(from)));
  };
  document.addEventListener("pointerdown", (event) => {
    if (event.target.id !== "timeline" || event.pointerType === "touch") return;
    event.preventDefault();
    begun = second(event.target, event);
  });
  document.addEventListener("pointerup", (event) => {
    const image = document.getElementById("timeline");
    if (begun === null || !image) return;
    const [from, to] = [begun, second(image, event)].sort((one, other) => one - other);
    begun = null;
    if (to - from >= 2) go(`${image.dataset.path}${image.dataset.path.includes("?") ? "&" : "?"}from=${from}&to=${to}`, "pushState");
  });

  const state = (word, text) => { connection.dataset.state = word; say(connection, text); };
  const listen = () => {
    if (source) source.close();
    source = new EventSource(document.body.dataset.events);
    source.addEventListener("open", () => state("live", "Live."));
    source.addEventListener("error", () => {
      const over = source.readyState === EventSource.CLOSED;
      state("lost", `Connection lost: what is shown may be old. ${over ? "Refresh to go on." : "Trying again…"}`);
    });
    source.addEventListener("view", async (event) => {
      const news = JSON.parse(event.data), from = event.target;
      await held;
      if (from !== source) return;
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
  };
  listen();
  addEventListener("pagehide", () => source.close());
  setInterval(tick, 1000);
})();
