// The packets that wait in each queue, coloured by flow; a mark is a ring.

import { aqmColour, colour } from "../colours";
import type { Playground } from "../playground";
import type { View } from "./charts";
import { fit } from "./scatter";

const ROW = 46;
const FLOW_COLOURS = 8;
const LEFT = 8;

export class PacketView implements View {
  constructor(
    private canvas: HTMLCanvasElement,
    private playground: Playground,
  ) {
    playground.showPackets = true;
  }

  draw(): void {
    const { runs } = this.playground;
    const height = `${Math.max(runs.length, 1) * ROW + 4}px`;
    if (this.canvas.parentElement!.style.height !== height) this.canvas.parentElement!.style.height = height;
    const { context, width } = fit(this.canvas);
    runs.forEach((run, row) => {
      const packets = run.trace.packets;
      const count = packets.length / 3;
      const top = row * ROW;
      context.fillStyle = aqmColour(run.slot);
      context.fillRect(LEFT, top + 4, 12, 12);
      context.fillStyle = colour("text");
      context.textAlign = "left";
      context.fillText(`${run.spec}: ${count} packets`, LEFT + 18, top + 15);
      const size = Math.min(16, Math.max(2, (width - 2 * LEFT) / Math.max(count, 40)));
      for (let i = 0; i < count && LEFT + i * size < width; i += 1) {
        // The head of the queue is at the right, where packets leave.
        const x = width - LEFT - (i + 1) * size;
        context.fillStyle = colour(`flow-${packets[3 * i] % FLOW_COLOURS}`);
        context.fillRect(x, top + 22, Math.max(size - 1, 1), 16);
        if (packets[3 * i + 2]) {
          context.fillStyle = colour("text");
          context.fillRect(x, top + 39, Math.max(size - 1, 1), 3);
        }
      }
    });
  }

  close(): void {
    this.playground.showPackets = false;
  }
}
