// Service worker: the page works without a network after its first visit. Files of assets/ have a digest in their name and
// come from the cache; all others come from the network while there is one. Theory and editor are kept once they were opened.

const CACHE = "aqumen-playground";
/** Files of this build, which `vite build` fills in. */
const FILES = "FILES";
/** Large files that not every visit needs. */
const ON_DEMAND = /theory|editor/;

async function fill() {
  const cache = await caches.open(CACHE);
  const kept = new Set((await cache.keys()).map((request) => request.url));
  const wanted = ["./", ...FILES].map((file) => new URL(file, location.href).href);
  await cache.addAll(wanted.filter((url) => (!kept.has(url) && !ON_DEMAND.test(url)) || !url.includes("/assets/")));
  await Promise.all([...kept].filter((url) => !wanted.includes(url)).map((url) => cache.delete(url)));
}

async function answer(request) {
  const cache = await caches.open(CACHE);
  const kept = await cache.match(request, { ignoreSearch: true });
  if (kept && request.url.includes("/assets/")) return kept;
  try {
    const found = await fetch(request);
    if (found.ok && request.url.includes("/assets/")) await cache.put(request, found.clone());
    return found;
  } catch (error) {
    if (kept) return kept;
    throw error;
  }
}

addEventListener("install", (event) => event.waitUntil(fill().then(() => skipWaiting())));
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("fetch", (event) => {
  if (event.request.method === "GET" && event.request.url.startsWith(registration.scope)) event.respondWith(answer(event.request));
});
