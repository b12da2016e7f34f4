import { limits } from '@tutti/core'
import type { RunEvent } from './run-event.ts'

/**
 * Two neighbouring deltas of the same kind as one, or undefined when they must stay apart: other kind, other call, other stream,
 * or too large together (design §7: joined before they are numbered, 16 KiB of UTF-8 at most).
 */
export function joinDeltas(previous: RunEvent, next: RunEvent): RunEvent | undefined {
  if (previous.type === 'text_delta' && next.type === 'text_delta') {
    return fits(previous.text, next.text) ? { ...next, text: previous.text + next.text } : undefined
  }
  if (previous.type === 'thinking_delta' && next.type === 'thinking_delta') {
    return fits(previous.text, next.text) ? { ...next, text: previous.text + next.text } : undefined
  }
  if (previous.type === 'token_delta' && next.type === 'token_delta') {
    return { ...next, tokens: previous.tokens + next.tokens }
  }
  if (previous.type === 'partial_tool_call' && next.type === 'partial_tool_call') {
    if (previous.callId !== next.callId || !fits(previous.argsTextDelta, next.argsTextDelta)) return undefined
    return { ...next, argsTextDelta: previous.argsTextDelta + next.argsTextDelta }
  }
  if (previous.type === 'shell_output_delta' && next.type === 'shell_output_delta') {
    const [first, second] = [previous.event, next.event]
    if (previous.callId !== next.callId || first.case !== second.case) return undefined
    if (!('data' in first) || !('data' in second) || !fits(first.data, second.data)) return undefined
    return { ...next, event: { case: second.case, data: first.data + second.data } }
  }
  return undefined
}

/** Whether this event may wait a moment for a neighbour to join. */
export function isDelta(event: RunEvent): boolean {
  if (event.type === 'shell_output_delta')
    return event.event.case === 'stdout' || event.event.case === 'stderr'
  return ['text_delta', 'thinking_delta', 'token_delta', 'partial_tool_call'].includes(event.type)
}

const encoder = new TextEncoder()

function fits(left: string, right: string): boolean {
  const units = left.length + right.length
  // A unit is one to three bytes: most texts need no counting, so that joining stays cheap.
  if (units > limits.coalesceBytes) return false
  if (units * 3 <= limits.coalesceBytes) return true
  // A character of four bytes that is cut in two has three in each half, so this never says too little.
  return encoder.encode(left).length + encoder.encode(right).length <= limits.coalesceBytes
}
