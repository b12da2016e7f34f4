import { createSingleFlight, ifFound, mirrorRefs, type CrashPoint, type LogId } from '@tutti/core'
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
  { owner, log, location, ref, known }: BaseRequest,
  signal: AbortSignal,
): Promise<Base> {
  const pinned = mirrorRefs.base(log)
  const there = await ifFound(mirrors.attach(location, signal))
  const held = await there?.readRef(pinned, signal)
  if (there && held) return { mirror: there, commit: held }
  return crashPoint('provision.mirror', async () => {
    let refusal: unknown
    const opened = await mirrors.open(location, signal).catch((thrown: unknown) => {
      if (known === undefined || signal.aborted) throw thrown
      refusal = thrown
      return undefined
    })
    const resolved = known ?? (await opened!.resolve(ref, signal))
    const { answer } = await catalog.idempotency.claim(owner, `base/${log}`, 'base', resolved, signal)
    const mirror = await mirrors.restore(location, answer, signal).catch((thrown: unknown) => {
      // That the source does not answer may pass.
      throw refusal ?? thrown
    })
    await mirror.updateRef(pinned, answer, signal)
    return { mirror, commit: answer }
  })
}
