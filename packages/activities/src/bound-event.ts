import type { BlobStore } from '@tutti/blob-store'
import { limits } from '@tutti/core'
import type { RunEvent } from '@tutti/protocol'

/** A piece never ends inside a surrogate pair, so that each is valid text of its own. */
function pieces(text: string, size: number): string[] {
  const parts: string[] = []
  for (let from = 0; from < text.length;) {
    let end = Math.min(text.length, from + size)
    const last = text.charCodeAt(end - 1)
    if (end < text.length && last >= 0xd800 && last <= 0xdbff) end -= 1
    parts.push(text.slice(from, end))
    from = end
  }
  return parts
}

/**
 * The event in a size that the log takes (design §7): long texts become several deltas, large tool arguments and results become
 * a blob that the event names.
 */
export async function boundEvent(
  event: RunEvent,
  blobs: BlobStore,
  signal: AbortSignal,
): Promise<RunEvent[]> {
  if (
    (event.type === 'text_delta' || event.type === 'thinking_delta') &&
    event.text.length > limits.coalesceBytes
  ) {
    return pieces(event.text, limits.coalesceBytes).map((text) => ({ ...event, text }))
  }
  if (event.type === 'tool_call_started') return [{ ...event, args: await spill(event.args, blobs, signal) }]
  if (event.type === 'tool_call_completed' && event.result !== undefined) {
    return [{ ...event, result: await spill(event.result, blobs, signal) }]
  }
  if (event.type === 'agent_question')
    return [{ ...event, text: event.text.slice(0, limits.maxInlineEventBytes / 4) }]
  return [event]
}

async function spill(value: unknown, blobs: BlobStore, signal: AbortSignal): Promise<unknown> {
  const bytes = new TextEncoder().encode(JSON.stringify(value) ?? 'null')
  if (bytes.length <= limits.maxInlineEventBytes) return value
  return { truncated: true, bytes: bytes.length, blobId: await blobs.put(bytes, signal) }
}
