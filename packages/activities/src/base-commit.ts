import { createSingleFlight, mirrorRefs, TuttiError, type LogId } from '@tutti/core'
import type { Mirror, Mirrors } from '@tutti/git'
import type { Catalog } from '@tutti/store'

export interface BaseRequest {
  readonly owner: string
  /** Of the ensemble, or of an agent that belongs to none. */
  readonly log: LogId
  /** As {@link Mirrors.open} takes it. */
  readonly location: string
  readonly ref: string
  /** The agent's own base, when it has begun before: the source need not answer then, nor have it any more. */
  readonly known?: string | undefined
}

export interface Base {
  readonly mirror: Mirror
  readonly commit: string
}

/**
 * The commit that an agent, or every child of an ensemble, starts from: resolved once, by whoever comes first, and then kept, so
 * that all attempts can be compared although the branch moves on. Who comes at the same moment waits for the first; once it is
 * known, the source is not asked again.
 */
export type OpenBase = (request: BaseRequest, signal: AbortSignal) => Promise<Base>

export function createOpenBase(deps: { readonly mirrors: Mirrors; readonly catalog: Catalog }): OpenBase {
  const once = createSingleFlight<LogId, Base>()
  return (request, signal) => once(request.log, signal, () => openBase(deps, request, signal))
}

async function openBase(
  { mirrors, catalog }: { readonly mirrors: Mirrors; readonly catalog: Catalog },
  { owner, log, location, ref, known }: BaseRequest,
  signal: AbortSignal,
): Promise<Base> {
  const pinned = mirrorRefs.base(log)
  const there = await mirrors.attach(location, signal).catch((thrown: unknown) => {
    if (TuttiError.from(thrown).code === 'not_found') return undefined
    throw thrown
  })
  const held = await there?.readRef(pinned, signal)
  if (there && held) return { mirror: there, commit: held }
  const opened = await mirrors.open(location, signal).catch((thrown: unknown) => {
    if (known !== undefined && !signal.aborted) return undefined
    throw thrown
  })
  const resolved = known ?? (await opened!.resolve(ref, signal))
  const { answer } = await catalog.idempotency.claim(owner, `base/${log}`, 'base', resolved, signal)
  const mirror = await mirrors.restore(location, answer, signal)
  await mirror.updateRef(pinned, answer, signal)
  return { mirror, commit: answer }
}
