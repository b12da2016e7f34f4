import type { RunEvent } from '@tutti/protocol'
import { eventText } from './event-text.ts'
import { truncate } from './table.ts'
import { safeLine } from './terminal-text.ts'

const labelWidth = 11

/**
 * One event as lines for a person, each at most `width` columns wide: the time of day here, what it is, and its text. A text of
 * several lines gives as many.
 *
 * @param atMs when it was stored, in milliseconds since the epoch; 0: unknown
 */
export function eventLines(event: RunEvent, atMs: number, width: number): string[] {
  const { label, text } = eventText(event) ?? unknownText(event)
  const start = `${timeOfDay(atMs)}  ${safeLine(label).padEnd(labelWidth)}`
  return text
    .replace(/\r?\n$/, '')
    .split(/\r?\n/)
    .map((line) => truncate(`${start} ${safeLine(line)}`.trimEnd(), width))
}

function timeOfDay(ms: number): string {
  if (ms === 0) return '--:--:--'
  const time = new Date(ms)
  return [time.getHours(), time.getMinutes(), time.getSeconds()]
    .map((part) => String(part).padStart(2, '0'))
    .join(':')
}

/** What a newer version has written. */
function unknownText({ type, ...rest }: RunEvent) {
  return { label: type, text: JSON.stringify(rest) }
}
