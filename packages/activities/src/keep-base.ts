import { TuttiError } from '@tutti/core'
import type { Mirror } from '@tutti/git'
import type { ActivityDeps } from './deps.ts'

/**
 * Stores a base commit in the archive while others go on: for a large repository it takes minutes. One at a time of each; a failure is
 * logged, and whoever asks next tries again.
 */
export type KeepBase = (mirror: Mirror, base: string) => void

export function createKeepBase({
  crashPoint,
  draining,
  log,
}: Pick<ActivityDeps, 'crashPoint' | 'draining' | 'log'>): KeepBase {
  const underWay = new Set<string>()
  return (mirror, base) => {
    if (underWay.has(base) || draining.aborted) return
    underWay.add(base)
    crashPoint('provision.base_kept', () => mirror.keepBase(base, draining))
      .catch((thrown: unknown) => {
        const err = TuttiError.from(thrown)
        if (err.code !== 'cancelled') log.warn({ base, err }, 'the base commit could not be archived yet')
      })
      .finally(() => underWay.delete(base))
  }
}
