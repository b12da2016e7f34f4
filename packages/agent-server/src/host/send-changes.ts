import { changedFile } from '@tutti/workspace'
import type { CallStream } from '../link/call.ts'
import type { HydrateRequest } from '../port.ts'
import { contentHead, toWireChange } from '../wire-change.ts'

const chunkBytes = 64 << 10
/** Contents that are read while those before them are on their way: a store answers late, and many at once. */
const readsAhead = 32

type Sending = Pick<CallStream, 'send'>
type ContentOf = HydrateRequest['contentOf']

/** Each change with its content: a small one in the same message, a large one in those that follow. */
export async function sendChanges(
  call: Sending,
  changes: HydrateRequest['changes'],
  contentOf: ContentOf,
): Promise<void> {
  const ahead: Promise<Uint8Array | undefined>[] = []
  for (const [at, change] of changes.entries()) {
    for (let next = at + ahead.length; next < changes.length && ahead.length < readsAhead; next += 1)
      ahead.push(readSmall(changes[next]!, contentOf))
    const file = changedFile(change)
    const small = await ahead.shift()
    await call.send(toWireChange(change), small)
    if (file && !small) await sendChunks(call, contentHead, contentOf(file.hash))
  }
}

/** Undefined for what has no content, and for a large one. */
function readSmall(
  change: HydrateRequest['changes'][number],
  contentOf: ContentOf,
): Promise<Uint8Array | undefined> {
  const file = changedFile(change)
  if (!file || file.size > chunkBytes) return Promise.resolve(undefined)
  const read = Array.fromAsync(contentOf(file.hash)).then((chunks) => Buffer.concat(chunks))
  // Whoever comes to it is told; one that an earlier failure makes superfluous tells nobody.
  read.catch(() => {})
  return read
}

export async function sendChunks(
  call: Sending,
  head: string,
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<void> {
  for await (const chunk of chunks) {
    for (let start = 0; start < chunk.length; start += chunkBytes) {
      await call.send(head, chunk.subarray(start, start + chunkBytes))
    }
  }
}
