import type { BlobStore } from '@tutti/blob-store'
import { limits } from '@tutti/core'
import type { RunEvent } from '@tutti/protocol'

/** Pieces of at most `size` bytes of UTF-8. None ends inside a character, so that each is valid text of its own. */
function pieces(text: string, size: number): string[] {
  const parts: string[] = []
  let from = 0
  let end = 0
  let bytes = 0
  for (const character of text) {
    const more = Buffer.byteLength(character)
    if (bytes + more > size) {
      parts.push(text.slice(from, end))
      from = end
      bytes = 0
    }
    end += character.length
    bytes += more
  }
  return [...parts, text.slice(from)]
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
    Buffer.byteLength(event.text) > limits.coalesceBytes
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
