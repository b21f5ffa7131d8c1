// Runs as points over two values: a click chooses one, a drag those inside its rectangle.

import { useEffect, useRef } from "preact/hooks";
import { colour } from "../colours";
import { fit, steps } from "./scatter";

/** Ranges of the two values: from and to across, from and to upwards. */
export type Brush = [number, number, number, number];

interface Point {
  x: number;
  y: number;
  /** Name of its colour. */
  colour: string;
}

interface PointsProps<P extends Point> {
  points: P[];
  brush: Brush | null;
  x: string;
  y: string;
  repeat: (point: P) => void;
  brushed: (brush: Brush | null) => void;
}

const HEIGHT = 260;
const [LEFT, RIGHT, TOP, BOTTOM] = [70, 20, 12, 44];
/** Largest distance of a click from its point, pixels. */
const NEAR = 14;
/** Points beyond which each is small. */
const MANY = 300;

/** Smallest and largest value, apart from each other. */
function span(points: Point[], key: "x" | "y"): [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (const point of points) [low, high] = [Math.min(low, point[key]), Math.max(high, point[key])];
  return high > low ? [low, high] : [low - 0.5, high + 0.5];
}

/** Places of values on a canvas of a width, and back. */
function scales(points: Point[], width: number) {
  const [[x0, x1], [y0, y1]] = [span(points, "x"), span(points, "y")];
  const [across, up] = [width - LEFT - RIGHT, HEIGHT - TOP - BOTTOM];
  return {
    x0, x1, y0, y1,
    left: (value: number) => LEFT + ((value - x0) / (x1 - x0)) * across,
    top: (value: number) => TOP + (1 - (value - y0) / (y1 - y0)) * up,
    valueX: (left: number) => x0 + ((left - LEFT) / across) * (x1 - x0),
    valueY: (top: number) => y0 + (1 - (top - TOP) / up) * (y1 - y0),
  };
}

/** Round values from `low` to `high`. */
function ticks(low: number, high: number, count: number): number[] {
  const [, step = high - low] = steps(high - low, count);
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, i) => (first + i) * step);
}

function paint<P extends Point>(canvas: HTMLCanvasElement, { points, brush, x, y }: PointsProps<P>): void {
  const { context, width } = fit(canvas);
  const { x0, x1, y0, y1, left, top } = scales(points, width);
  context.fillStyle = colour("text");
  context.textAlign = "center";
  for (const value of ticks(x0, x1, 6)) context.fillText(String(+value.toPrecision(4)), left(value), HEIGHT - 24);
  context.fillText(x, (LEFT + width - RIGHT) / 2, HEIGHT - 5);
  context.textAlign = "right";
  for (const value of ticks(y0, y1, 4)) context.fillText(String(+value.toPrecision(4)), LEFT - 10, top(value) + 4);
  context.save();
  context.translate(14, (TOP + HEIGHT - BOTTOM) / 2);
  context.rotate(-Math.PI / 2);
  context.textAlign = "center";
  context.fillText(y, 0, 0);
  context.restore();
  const size = points.length > MANY ? 4 : 9;
  for (const point of points) {
    const chosen = !brush || (point.x >= brush[0] && point.x <= brush[1] && point.y >= brush[2] && point.y <= brush[3]);
    context.globalAlpha = chosen ? 0.8 : 0.12;
    context.fillStyle = colour(point.colour);
    context.fillRect(left(point.x) - size / 2, top(point.y) - size / 2, size, size);
  }
  context.globalAlpha = 1;
}

export function Points<P extends Point>(props: PointsProps<P>) {
  const { points } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const rectangle = useRef<HTMLDivElement>(null);
  const from = useRef<[number, number] | null>(null);
  useEffect(() => {
    if (!canvas.current) return;
    const observer = new ResizeObserver(() => canvas.current && paint(canvas.current, props));
    observer.observe(canvas.current);
    return () => observer.disconnect();
  }, [points, props.brush]);
  if (!points.length) return <p>No run has both values.</p>;
  const at = (event: PointerEvent): [number, number] => {
    const box = canvas.current!.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const moved = (event: PointerEvent) => {
    if (!from.current) return;
    const [[ax, ay], [bx, by]] = [from.current, at(event)];
    const place = { left: `${Math.min(ax, bx)}px`, top: `${Math.min(ay, by)}px`, width: `${Math.abs(bx - ax)}px`, height: `${Math.abs(by - ay)}px` };
    Object.assign(rectangle.current!.style, place, { display: "block" });
  };
  const released = (event: PointerEvent) => {
    if (!from.current) return;
    const [[ax, ay], [bx, by]] = [from.current, at(event)];
    from.current = null;
    rectangle.current!.style.display = "none";
    const scale = scales(points, canvas.current!.clientWidth);
    if (Math.abs(bx - ax) > 4 || Math.abs(by - ay) > 4) {
      props.brushed([scale.valueX(Math.min(ax, bx)), scale.valueX(Math.max(ax, bx)), scale.valueY(Math.max(ay, by)), scale.valueY(Math.min(ay, by))]);
      return;
    }
    const distance = (point: P) => Math.hypot(scale.left(point.x) - bx, scale.top(point.y) - by);
    const nearest = points.reduce((best, point) => (distance(point) < distance(best) ? point : best));
    if (distance(nearest) <= NEAR) props.repeat(nearest);
  };
  return (
    <div class="points">
      <canvas
        ref={canvas}
        style={{ width: "100%", height: `${HEIGHT}px`, touchAction: "none" }}
        role="img"
        aria-label={`${props.y} over ${props.x}, a point for each run; the table below lists the chosen runs`}
        onPointerDown={(event) => {
          from.current = at(event);
          event.currentTarget.setPointerCapture(event.pointerId);
        }}
        onPointerMove={moved}
        onPointerUp={released}
      />
      <div class="brush" ref={rectangle} />
    </div>
  );
}
