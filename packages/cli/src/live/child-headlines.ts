import { followAgentEvents, type ClientSource } from '@tutti/client'
import type { RunEvent } from '@tutti/protocol'

/** What each child does at the moment, from its own run log: the ensemble's stream tells changes of state only. */
export interface ChildHeadlines {
  /** Follows a child, once. */
  watch(bcId: string): void
  /** One line of untrusted text; undefined when nothing is known. */
  of(bcId: string): string | undefined
}

/** Follows until the signal. A child that cannot be followed has no headline; the view does without. */
export function createChildHeadlines(
  source: ClientSource,
  signal: AbortSignal,
  onChange: () => void,
): ChildHeadlines {
  const lines = new Map<string, string>()
  const watched = new Set<string>()
  const follow = async (bcId: string) => {
    let open = ''
    for await (const { eventJson } of followAgentEvents(source, { bcId, follow: true, signal })) {
      const event = JSON.parse(eventJson) as RunEvent
      const text = textOf(event)
      open = text === undefined ? '' : lastPart(open + text)
      const line = text === undefined ? headlineOf(event) : lastFullLine(open)
      if (line === undefined) continue
      lines.set(bcId, line)
      onChange()
    }
  }
  return {
    watch(bcId) {
      if (watched.has(bcId)) return
      watched.add(bcId)
      follow(bcId).catch(() => lines.delete(bcId))
    },
    of: (bcId) => lines.get(bcId),
  }
}

/** Output that comes in pieces. */
function textOf(event: RunEvent): string | undefined {
  if (event.type === 'text_delta' || event.type === 'thinking_delta') return event.text
  if (event.type !== 'shell_output_delta') return undefined
  return event.event.case === 'stdout' || event.event.case === 'stderr' ? event.event.data : undefined
}

const keep = 500
const lastPart = (text: string): string => text.slice(-keep)

function lastFullLine(text: string): string | undefined {
  const line = text.trimEnd().split('\n').at(-1)?.trim()
  return line === '' ? undefined : line
}

function headlineOf(event: RunEvent): string | undefined {
  switch (event.type) {
    case 'sandbox':
      return event.state === 'destroyed' || event.state === 'ready' ? undefined : `sandbox: ${event.state}`
    case 'tool_call_started':
      return `${event.toolName} ${shortly(event.args)}`
    case 'file_change':
      return `${event.action} ${event.path}`
    case 'agent_question':
      return `asks: ${event.text}`
    case 'check':
      return `check: ${event.command}`
    default:
      return undefined
  }
}

function shortly(args: unknown): string {
  if (typeof args !== 'object' || args === null) return ''
  const [first] = Object.values(args).filter((value) => typeof value === 'string')
  return typeof first === 'string' ? first : ''
}
