import type { Stream } from '../output/output.ts'

/** A block of lines at the end of a terminal that is drawn over itself. */
export interface Repainter {
  /** Draws soon: at most ten times a second, always the newest. */
  paint(render: () => readonly string[]): void
  /** Takes the block away, so that other text can be written; the next paint draws it anew. */
  clear(): void
  /** Draws what is due and leaves it standing. */
  finish(): void
}

/** Whether a stream is a terminal that can move its cursor; else nothing may be drawn over. */
export const canRepaint = (stream: Stream, env: Readonly<Record<string, string | undefined>>): boolean =>
  stream.isTTY && env['TERM'] !== 'dumb'

const leastMs = 100

export function createRepainter(stream: Stream): Repainter {
  let height = 0
  let lastAt = -Infinity
  let timer: NodeJS.Timeout | undefined
  let due: (() => readonly string[]) | undefined

  const erase = () => (height > 0 ? `\u001b[${height}A\r\u001b[J` : '')
  const draw = () => {
    clearTimeout(timer)
    timer = undefined
    if (!due) return
    const lines = due()
    due = undefined
    stream.write(`${erase()}${lines.join('\n')}\n`)
    height = lines.length
    lastAt = performance.now()
  }
  return {
    paint(render) {
      due = render
      timer ??= setTimeout(draw, Math.max(0, lastAt + leastMs - performance.now()))
    },
    clear() {
      if (height > 0) stream.write(erase())
      height = 0
    },
    finish: draw,
  }
}
