import { throwIfCancelled } from '@tutti/core'
import { isPassing } from './passing-failures.ts'
import { retry } from './retry.ts'
import type { S3Limits } from './s3-limits.ts'
import type { S3Objects } from './s3-objects.ts'

/**
 * The bytes of an object from `start` up to `end`, or to its own end. A connection that breaks is followed by a request for the rest, as
 * an object of ours never changes; each new one brings a byte within the patience, or the reading fails.
 */
export async function* objectChunks(
  objects: S3Objects,
  limits: S3Limits,
  { key, start, end }: { readonly key: string; readonly start: number; readonly end: number | undefined },
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  let position = start
  for (;;) {
    const from = position
    const answer = await retry(limits, signal, async () => {
      const opened = await objects.open(key, from, end, signal)
      const first = await opened?.chunks.next()
      if (opened && first?.done && opened.length > 0) throw endedEarly()
      return opened && first && !first.done ? { ...opened, first: first.value } : undefined
    })
    if (!answer) return
    try {
      position += answer.first.length
      yield answer.first
      for await (const chunk of answer.chunks) {
        throwIfCancelled(signal)
        position += chunk.length
        yield chunk
      }
      throwIfCancelled(signal)
      if (position >= from + answer.length) return
    } catch (error) {
      throwIfCancelled(signal)
      if (!isPassing(error)) throw error
    } finally {
      // The reader may have stopped at the first chunk.
      await answer.chunks.return(undefined)
    }
  }
}

const endedEarly = (): Error => Object.assign(new Error('the answer ended early'), { code: 'ECONNRESET' })
