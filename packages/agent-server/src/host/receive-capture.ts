import { isBlobId, pathProblem, TuttiError } from '@tutti/core'
import type { FileSkipReason } from '@tutti/protocol'
import type { CapturedChange } from '@tutti/workspace'
import { contentOf } from '../content-of.ts'
import type { OutgoingCall } from '../link/caller.ts'
import type { CaptureSink, CaptureSummary } from '../port.ts'
import { fromWireChange, type WireChange } from '../wire-change.ts'
import { hashChecked } from './hash-checked.ts'

type CaptureHead =
  | { readonly change: WireChange }
  | { readonly skipped: { readonly path: string; readonly reason: FileSkipReason; readonly size?: number } }
  | { readonly summary: CaptureSummary }

/** Hands a running capture to the sink. The inside takes it for done only when the sink has taken everything. */
export async function receiveCapture(
  call: OutgoingCall,
  sink: CaptureSink,
  maxFileBytes: number,
): Promise<CaptureSummary> {
  const messages = call.messages[Symbol.asyncIterator]()
  for (let next = await messages.next(); !next.done; next = await messages.next()) {
    const head = next.value.head as CaptureHead
    if ('change' in head) await receiveChange(fromWireChange(head.change), messages, sink, maxFileBytes)
    else if ('skipped' in head) {
      const { path, reason, size } = head.skipped
      await sink.skipped(Buffer.from(path, 'base64'), reason, size)
    } else {
      await call.send('commit')
      break
    }
  }
  return (await call.result) as CaptureSummary
}

async function receiveChange(
  change: CapturedChange,
  messages: AsyncIterator<{ head: unknown; bytes: Uint8Array }>,
  sink: CaptureSink,
  maxFileBytes: number,
): Promise<void> {
  if (change.action === 'deleted') {
    refuseUnsafe(change.path)
    return sink.change(change, undefined)
  }
  const { path, size, hash } = change.state
  refuseUnsafe(path)
  if (!isBlobId(hash) || !Number.isSafeInteger(size) || size < 0 || size > maxFileBytes) {
    throw new TuttiError('data_loss', 'The agent server reported a change that cannot be.', {})
  }
  const content = hashChecked(contentOf(messages, size), hash)
  await sink.change(change, content)
  // A sink that has the blob already need not read it; what follows is found behind it all the same.
  for await (const _ of content) void _
}

function refuseUnsafe(path: Uint8Array): void {
  const problem = pathProblem(path)
  if (problem) throw new TuttiError('data_loss', `The agent server reported an unsafe path: ${problem}.`, {})
}
