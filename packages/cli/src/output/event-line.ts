import { truncate } from './table.ts'
import { safeLine } from './terminal-text.ts'

/** Fields that say most, in this order. */
const telling = [
  'phase',
  'status',
  'state',
  'action',
  'path',
  'toolName',
  'outcome',
  'reason',
  'text',
  'summary',
  'command',
  'commit',
  'message',
  'detail',
  'agent',
  'turnId',
]

/** One event as one line for a person, at most `width` columns wide. */
export function eventLine(event: Readonly<Record<string, unknown>>, width: number): string {
  const { type, ...rest } = event
  const known = telling.filter((name) => name in rest).map((name) => shown(rest[name]))
  const parts = known.length > 0 ? known : Object.values(rest).map(shown)
  return truncate(`${safeLine(String(type)).padEnd(22)} ${safeLine(parts.filter(Boolean).join('  '))}`, width)
}

function shown(value: unknown): string {
  if (typeof value === 'string') return value
  if (value === undefined || value === null) return ''
  return JSON.stringify(value)
}
