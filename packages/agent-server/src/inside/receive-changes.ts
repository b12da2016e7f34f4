import { TuttiError } from '@tutti/core'
import { changedFile, type CapturedChange } from '@tutti/workspace'
import { contentOf } from '../content-of.ts'
import type { CallMessage } from '../link/call.ts'
import {
  changesEndHead,
  fromWireChange,
  smallBytes,
  type WireChange,
  type WireChangesHead,
} from '../wire-change.ts'

/** What a path is to become, with its content: as a whole when it is small. */
export interface HostChange {
  readonly change: CapturedChange
  readonly content: Uint8Array | AsyncIterable<Uint8Array>
}

/** The changes that the host sends, in their order. @throws TuttiError `cancelled` when they end before they are whole. */
export async function* receiveChanges(messages: AsyncIterator<CallMessage>): AsyncGenerator<HostChange> {
  for (let next = await messages.next(); !next.done; next = await messages.next()) {
    const { head, bytes } = next.value
    if (head === changesEndHead) return
    let start = (head as WireChangesHead).listBytes
    for (const wire of JSON.parse(Buffer.from(bytes.subarray(0, start)).toString()) as WireChange[]) {
      const change = fromWireChange(wire)
      const size = changedFile(change)?.size ?? 0
      if (size > smallBytes) {
        const content = contentOf(messages, size)
        yield { change, content }
        // What could not be written comes all the same.
        for await (const _ of content) void _
      } else {
        yield { change, content: bytes.subarray(start, start + size) }
        start += size
      }
    }
  }
  throw new TuttiError('cancelled', 'The changes ended before they were whole.')
}
