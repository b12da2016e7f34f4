import { mirrorRefs, type LogId } from '@tutti/core'
import type { Mirror } from '@tutti/git'
import type { Catalog } from '@tutti/store'

/**
 * The commit that an agent, or every child of an ensemble, starts from: resolved once, by whoever comes first, and then kept, so
 * that all attempts can be compared although the branch moves on.
 */
export async function baseCommit(
  catalog: Catalog,
  mirror: Mirror,
  request: { readonly owner: string; readonly log: LogId; readonly ref: string },
  signal: AbortSignal,
): Promise<string> {
  const pinned = mirrorRefs.base(request.log)
  const known = await mirror.readRef(pinned, signal)
  if (known) return known
  const resolved = await mirror.resolve(request.ref, signal)
  const { answer } = await catalog.idempotency.claim(
    request.owner,
    `base/${request.log}`,
    'base',
    resolved,
    signal,
  )
  await mirror.updateRef(pinned, answer, signal)
  return answer
}
