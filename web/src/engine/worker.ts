// The worker of one AQM: a run of the packet engine, stepped by requests of the page.

import { Run, initSync } from "../wasm/aqumen_web.js";
import { prepare } from "./law";
import type { Answer, Call, Loaded, Look, Request, ShownLink, Want } from "./protocol";

let run: Run | undefined;
/** Samples that the page has. */
let sent = 0;

function current(): Run {
  if (!run) throw new Error("no scenario is loaded");
  return run;
}

const shownLink = (run: Run): ShownLink => ({ target_pkts: run.target_pkts(), rate_bps: run.rate_bps(), medium: run.has_medium() });

function look(over: boolean, want: Want): Look {
  const run = current();
  const samples = run.series(sent);
  sent += samples.length / 3;
  const answer: Look = { now_ns: run.now_ns(), over, samples, observation: run.observe() };
  if (want.flows) answer.flows = run.flows();
  if (want.packets) answer.packets = run.contents();
  if (want.sojourns) answer.sojourns = run.sojourns();
  return answer;
}

function handle(call: Call): Loaded | ShownLink | Look | string | undefined {
  switch (call.kind) {
    case "load": {
      initSync({ module: call.module });
      const { scenario, changes, aqm, seed, law } = call.setup;
      prepare(law);
      const begun = new Run(scenario, changes, aqm, seed);
      run?.free();
      run = begun;
      sent = 0;
      return {
        ...shownLink(run),
        end_ns: run.end_ns(),
        links: run.links(),
        groups: run.groups(),
        counts: run.counts(),
        groupsOfFlows: run.groups_of_flows(),
      };
    }
    case "show":
      current().show(call.link);
      sent = 0;
      return shownLink(current());
    case "advance":
      return look(current().advance(call.until_ns), call.want);
    case "push":
      current().push(call.event);
      return undefined;
    case "scenario":
      return current().scenario();
  }
}

onmessage = ({ data }: MessageEvent<Request>) => {
  let answer: Answer;
  try {
    answer = { id: data.id, result: handle(data.call) };
  } catch (error) {
    answer = { id: data.id, error: error instanceof Error ? error.message : String(error) };
  }
  postMessage(answer);
};
