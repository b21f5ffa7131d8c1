"""Pages in a headless Chromium: what it makes of them, and what axe-core says of them."""

import json
import re
import subprocess
from pathlib import Path

__all__ = ["browse", "judged", "screen", "told"]


def screen(width, height):
    """Flags for a window as narrow as a phone: only in full screen may Chromium be narrower than 500 pixels."""
    return [f"--window-size={width},{height}", f"--screen-info={{{width}x{height}}}", "--kiosk"]


def browse(text, tmp_path, scheme, width, *more):
    """Render a page in headless Chromium."""
    probed = tmp_path / "probed.html"
    probed.write_text(text)
    return subprocess.run(
        [
            "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
            "--disable-dev-shm-usage", f"--user-data-dir={tmp_path / 'profile'}", *screen(width, 2400),
            f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}", "--virtual-time-budget=20000",
            *more, "--dump-dom", probed.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def told(chromium):
    found = re.search(r'<pre id="probe">(.*?)</pre>', chromium.stdout, re.DOTALL)
    assert found, chromium.stderr[-2000:]
    return json.loads(found.group(1).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


# axe-core 4.14.1 as npm has it (https://www.npmjs.com/package/axe-core, MPL 2.0).
AXE = Path(__file__).parent / "vendor" / "axe.min.js"
JUDGE = """<script>
addEventListener("load", () => setTimeout(async () => {
  const off = SOME_OFF;
  if (off) document.querySelector(".chip").click();
  const asked = { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], resultTypes: ["violations"] };
  const answer = await axe.run(document, asked);
  const { scrollWidth, clientWidth } = document.documentElement;
  const wide = scrollWidth > clientWidth ? [["wider than the window", scrollWidth, clientWidth]] : [];
  const pre = document.createElement("pre");
  pre.id = "probe";
  const found = answer.violations.map((v) => [v.id, v.nodes.length, v.nodes[0].html.slice(0, 160)]);
  pre.textContent = JSON.stringify([...wide, ...found]);
  document.body.append(pre);
}, 300));
</script>"""


def judged(text, tmp_path, scheme, width, *, some_off=False):
    """Violations of WCAG 2.2 AA that a program can find: contrast, names, captions, keyboard."""
    judge = f"<script>{AXE.read_text()}</script>" + JUDGE.replace("SOME_OFF", str(some_off).lower())
    return told(browse(text.replace("</body>", judge + "</body>", 1), tmp_path, scheme, width))
