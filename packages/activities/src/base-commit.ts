import { createSingleFlight, mirrorRefs, TuttiError, type CrashPoint, type LogId } from '@tutti/core'
import type { Mirror, Mirrors } from '@tutti/git'
import type { Catalog } from '@tutti/store'

export interface BaseRequest {
  readonly owner: string
  /** Of the ensemble, or of an agent that belongs to none. */
  readonly log: LogId
  /** As {@link Mirrors.open} takes it. */
  readonly location: string
  readonly ref: string
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

interface OpenBaseDeps {
  readonly mirrors: Mirrors
  readonly catalog: Catalog
  readonly crashPoint: CrashPoint
}

export function createOpenBase(deps: OpenBaseDeps): OpenBase {
  const once = createSingleFlight<LogId, Base>()
  return (request, signal) => once(request.log, signal, () => openBase(deps, request, signal))
}

async function openBase(
  { mirrors, catalog, crashPoint }: OpenBaseDeps,
  { owner, log, location, ref }: BaseRequest,
  signal: AbortSignal,
): Promise<Base> {
  const pinned = mirrorRefs.base(log)
  const there = await mirrors.attach(location, signal).catch((thrown: unknown) => {
    if (TuttiError.from(thrown).code === 'not_found') return undefined
    throw thrown
  })
  const known = await there?.readRef(pinned, signal)
  if (there && known) return { mirror: there, commit: known }
  return crashPoint('provision.mirror', async () => {
    const mirror = await mirrors.open(location, signal)
    const resolved = await mirror.resolve(ref, signal)
    const { answer } = await catalog.idempotency.claim(owner, `base/${log}`, 'base', resolved, signal)
    await mirror.updateRef(pinned, answer, signal)
    return { mirror, commit: answer }
  })
}
