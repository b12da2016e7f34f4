import { pathProblem, TuttiError, type BlobId } from '@tutti/core'
import { FileSyncRequestSchema, type FileSyncRequest, type SyncedFile } from '@tutti/proto'
import { encodeOffset, encodeRunEvent } from '@tutti/protocol'
import { blobIdFromBytes } from '@tutti/protocol/wire'
import type { CapturedChange, FileState } from '@tutti/workspace'
import { fileSync } from '@tutti/workspace/log'

import { callerOf } from '../call-context.ts'
import { agentIdOf } from '../commands.ts'
import type { CallContext, HandlerDeps } from '../handler.ts'
import { answerOnce } from '../idempotency.ts'
import { requestIdOf } from '../new-id.ts'

/** Contents that are looked for at once. */
const looksAtOnce = 16
/** A link's target is a path. */
const maxTargetBytes = 4096

/**
 * `FileSync`: the user's versions go into the agent's log, all of a request at once; from there a living sandbox gets them, or the next
 * one. An event never names a content that is not there, nor one that the caller may not read.
 */
export function createFileSync({ catalog, eventLog, blobs }: HandlerDeps) {
  return async (request: FileSyncRequest, context: CallContext) => {
    const { signal } = context
    const { owner } = callerOf(context)
    const bcId = agentIdOf(request.bcId)
    const { state } = await catalog.agents.get(owner, bcId, signal)
    if (state.status === 'ARCHIVED' || state.status === 'EXPIRED') {
      const way = state.status === 'ARCHIVED' ? 'resume it first' : 'start a new agent from its last commit'
      throw new TuttiError('failed_precondition', `The agent is ${state.status}; ${way}.`, {
        state: state.status,
      })
    }
    await useBlobs(owner, request.files, signal)
    const changes: CapturedChange[] = []
    for (let start = 0; start < request.files.length; start += looksAtOnce) {
      const some = request.files.slice(start, start + looksAtOnce)
      changes.push(...(await Promise.all(some.map((file, at) => changeOf(file, start + at, signal)))))
    }
    const { answer: requestId } = await answerOnce(
      catalog.idempotency,
      { owner, key: request.idempotencyKey, schema: FileSyncRequestSchema, request },
      () => requestIdOf(owner, ''),
      signal,
    )
    const { last } = await eventLog.append(
      bcId,
      { id: `client/${requestId}`, epoch: 0, sequence: 1 },
      changes.map((change, at) => encodeRunEvent(fileSync(change, `${requestId}/${at}`))),
      signal,
    )
    return { offsetKey: encodeOffset(bcId, last) }
  }

  async function changeOf(file: SyncedFile, index: number, signal: AbortSignal): Promise<CapturedChange> {
    const { path, mode } = file
    const field = (name: string) => `files[${index}].${name}`
    const problem = pathProblem(path)
    if (problem)
      throw new TuttiError('invalid_argument', `The path is refused: ${problem}.`, { field: field('path') })
    const base = file.baseHash.length > 0 && { base: blobIdFromBytes(file.baseHash, field('base_hash')) }
    const hasContent = mode !== '' && mode !== '040000'
    if (hasContent !== file.hash.length > 0) {
      const message = hasContent
        ? 'A file or link needs the hash of its content.'
        : 'Without a file there is no hash.'
      throw new TuttiError('invalid_argument', message, { field: field('hash') })
    }
    if (mode === '') return { action: 'deleted', path, ...base }
    const action = base ? 'modified' : 'created'
    if (mode === '040000') return { action, state: { path, fileType: 'dir', mode }, ...base }
    const hash = blobIdFromBytes(file.hash, field('hash'))
    const size = await sizeOf(hash, field('hash'), signal)
    const isLink = mode === '120000'
    if (isLink && (size === 0 || size > maxTargetBytes))
      throw new TuttiError('invalid_argument', `A link's target has 1 to ${maxTargetBytes} bytes.`, {
        field: field('hash'),
      })
    const fileType = isLink ? 'symlink' : 'file'
    return { action, state: { path, fileType, mode: mode as FileState['mode'], size, hash }, ...base }
  }

  /** Makes the contents young, so that none of them is removed from here on. @throws TuttiError `not_found` also for another owner's. */
  async function useBlobs(owner: string, files: readonly SyncedFile[], signal: AbortSignal): Promise<void> {
    const hashes: BlobId[] = []
    for (const [index, { hash }] of files.entries()) {
      if (hash.length === 0) continue
      const field = `files[${index}].hash`
      const id = blobIdFromBytes(hash, field)
      if (!(await catalog.blobRefs.has(owner, id, signal))) throw missing(id, field)
      hashes.push(id)
    }
    await catalog.blobRefs.use(owner, hashes, signal)
  }

  async function sizeOf(hash: BlobId, field: string, signal: AbortSignal): Promise<number> {
    return blobs.size(hash, signal).catch((thrown: unknown) => {
      throw thrown instanceof TuttiError && thrown.code === 'not_found'
        ? missing(hash, field, thrown)
        : thrown
    })
  }
}

const missing = (hash: BlobId, field: string, cause?: unknown) =>
  new TuttiError(
    'not_found',
    `There is no blob ${hash}. Store it first: PUT /blobs/${hash}.`,
    { field, id: hash },
    cause,
  )
