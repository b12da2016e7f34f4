import { TuttiError } from '@tutti/core'
import { changedFile, type CapturedChange } from '@tutti/workspace'
import type { CallStream } from '../link/call.ts'
import type { HydrateRequest } from '../port.ts'
import {
  changesEndHead,
  contentHead,
  smallBytes,
  toWireChange,
  type WireChangesHead,
} from '../wire-change.ts'

const chunkBytes = 64 << 10
/** Of one message: many small changes cost less together. */
const [batchBytes, batchChanges] = [256 << 10, 128]
/** Batches that are read while those before them are on their way. */
const batchesAhead = 3

type Sending = Pick<CallStream, 'send'>
type Contents = Pick<HydrateRequest, 'contentOf' | 'contentsOf'>

/** The changes in their order with their contents: small ones many at a time, a large one behind its change. */
export async function sendChanges(
  call: Sending,
  changes: HydrateRequest['changes'],
  source: Contents,
): Promise<void> {
  const ahead: {
    readonly batch: readonly CapturedChange[]
    readonly contents: Promise<readonly Uint8Array[]>
  }[] = []
  const sendFirst = async () => {
    const { batch, contents } = ahead.shift()!
    const list = Buffer.from(JSON.stringify(batch.map(toWireChange)))
    const head: WireChangesHead = { listBytes: list.length }
    await call.send(head, Buffer.concat([list, ...(await contents)]))
    const [large] = batch.map(changedFile)
    if (large && !isSmall(large)) await sendChunks(call, contentHead, source.contentOf(large.hash))
  }
  for (const batch of batchesOf(changes)) {
    const contents = readSmall(batch, source)
    // Whoever comes to it is told; one that an earlier failure makes superfluous tells nobody.
    contents.catch(() => {})
    ahead.push({ batch, contents })
    if (ahead.length > batchesAhead) await sendFirst()
  }
  while (ahead.length > 0) await sendFirst()
  await call.send(changesEndHead)
}

const isSmall = ({ size }: { readonly size: number }): boolean => size <= smallBytes

function* batchesOf(changes: HydrateRequest['changes']): Generator<readonly CapturedChange[]> {
  let batch: CapturedChange[] = []
  let bytes = 0
  const take = () => {
    const taken = batch
    ;[batch, bytes] = [[], 0]
    return taken
  }
  for (const change of changes) {
    const size = changedFile(change)?.size ?? 0
    const isLarge = size > smallBytes
    if (batch.length > 0 && (isLarge || batch.length === batchChanges || bytes + size > batchBytes))
      yield take()
    batch.push(change)
    bytes += size
    if (isLarge) yield take()
  }
  if (batch.length > 0) yield take()
}

/** Those of a batch; none for a large one. */
async function readSmall(
  batch: readonly CapturedChange[],
  { contentOf, contentsOf }: Contents,
): Promise<readonly Uint8Array[]> {
  const files = batch.flatMap((change) => changedFile(change) ?? []).filter(isSmall)
  const hashes = files.map(({ hash }) => hash)
  const read = contentsOf?.(hashes) ?? Promise.all(hashes.map((hash) => collect(contentOf(hash))))
  const contents = await read
  for (const [at, { size, hash }] of files.entries())
    if (contents[at]!.length !== size)
      throw new TuttiError('data_loss', 'The content of a change has another size than it says.', { hash })
  return contents
}

const collect = async (chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> =>
  Buffer.concat(await Array.fromAsync(chunks))

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
