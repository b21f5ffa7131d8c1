// The panel of a lesson: its text, its steps, and which of them are done.

import { useState } from "preact/hooks";
import { type Step, unitOf, valueOf } from "../lesson";
import type { Playground } from "../playground";
import { LESSONS } from "../lessons";
import { Markdown } from "./markdown";

/** Present values of a step's conditions, for each AQM. */
function Values({ playground, step }: { playground: Playground; step: Step }) {
  const measured = step.conditions.filter((condition) => unitOf(condition));
  return (
    <p class="soft">
      {playground.active().map((run) => {
        const values = measured.map((condition) => {
          const value = valueOf(condition, step, run, playground);
          return `${condition.name} ${Number.isNaN(value) ? "–" : `${+value.toPrecision(3)} ${unitOf(condition)}`}`;
        });
        return <span key={run.slot}>{`${run.spec}: ${[...new Set(values)].join(", ")}. `}</span>;
      })}
    </p>
  );
}

export function LessonChoice({ playground }: { playground: Playground }) {
  const shown = LESSONS.find((lesson) => lesson.text === playground.lesson?.source)?.name ?? (playground.lesson ? "own" : "");
  return (
    <label>
      Lesson{" "}
      <select
        name="lesson"
        value={shown}
        onChange={(event) => {
          const lesson = LESSONS.find(({ name }) => name === event.currentTarget.value);
          if (lesson) void playground.teach(lesson.text);
          else playground.leaveLesson();
        }}
      >
        <option value="">none</option>
        {shown === "own" && <option value="own">{playground.lesson!.title}</option>}
        {LESSONS.map(({ name, title }) => (
          <option value={name}>{title}</option>
        ))}
      </select>
    </label>
  );
}

export function LessonPanel({ playground }: { playground: Playground }) {
  const { lesson, done } = playground;
  const [copied, setCopied] = useState("");
  if (!lesson) return null;
  const link = async () => {
    const known = LESSONS.find(({ text }) => text === lesson.source);
    const url = new URL(location.href);
    url.hash = new URLSearchParams(known ? { lesson: known.name } : { "lesson-text": lesson.source }).toString();
    history.replaceState(null, "", url);
    await navigator.clipboard?.writeText(url.href).catch(() => undefined);
    setCopied("The link is copied, and is the address of the page.");
  };
  return (
    <section class="wide lesson">
      <header>
        <h2>{lesson.title}</h2>
        <div class="buttons">
          <button onClick={() => void playground.teach(lesson.source)}>Begin again</button>
          <button onClick={() => void link()}>Link to this lesson</button>
          <button onClick={() => playground.leaveLesson()}>Close</button>
        </div>
      </header>
      <Markdown text={lesson.text} />
      <ol>
        {lesson.steps.map((step, i) => (
          <li class={i < done ? "done" : ""} data-testid={`step-${i + 1}`}>
            <Markdown text={step.text} />
            {i === done && <Values playground={playground} step={step} />}
          </li>
        ))}
      </ol>
      <p role="status">{done === lesson.steps.length ? "All steps are done." : `${done} of ${lesson.steps.length} steps done.`} {copied}</p>
    </section>
  );
}
