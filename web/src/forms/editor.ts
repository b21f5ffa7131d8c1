// The editor, a part of the page that is loaded when it is first opened: CodeMirror with JavaScript.

import { javascript } from "@codemirror/lang-javascript";
import { syntaxTree } from "@codemirror/language";
import { StateEffect, StateField } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView } from "@codemirror/view";
import { basicSetup } from "codemirror";

const markLine = StateEffect.define<number | null>();

const markedLine = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(lines, transaction) {
    for (const effect of transaction.effects) {
      if (!effect.is(markLine)) continue;
      if (effect.value === null || effect.value > transaction.state.doc.lines) return Decoration.none;
      return Decoration.set([Decoration.line({ class: "wrong-line" }).range(transaction.state.doc.line(effect.value).from)]);
    }
    return lines.map(transaction.changes);
  },
  provide: (field) => EditorView.decorations.from(field),
});

export class Editor {
  private view: EditorView;

  constructor(place: HTMLElement, code: string, changed: (code: string) => void) {
    this.view = new EditorView({
      doc: code,
      parent: place,
      extensions: [
        basicSetup,
        javascript(),
        markedLine,
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": "Code of the law" }),
        EditorView.updateListener.of((update) => update.docChanged && changed(update.state.doc.toString())),
      ],
    });
  }

  /** Marks the line of an error; `null` for none. */
  mark(line: number | null): void {
    this.view.dispatch({ effects: markLine.of(line) });
  }

  /** Line of the first syntax error. */
  syntaxError(): number | null {
    let line: number | null = null;
    syntaxTree(this.view.state).iterate({
      enter: (node) => {
        if (node.type.isError && line === null) line = this.view.state.doc.lineAt(node.from).number;
      },
    });
    return line;
  }

  close(): void {
    this.view.destroy();
  }
}
