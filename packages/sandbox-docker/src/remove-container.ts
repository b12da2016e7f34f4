import { setTimeout as sleep } from 'node:timers/promises'
import { throwIfCancelled } from '@tutti/core'
import { engineError, statusOf } from './engine-error.ts'
import type { Engine } from './engine.ts'

const pollMs = 50
/** SIGKILL needs no answer from a container; only the engine's own work takes time. */
const limitMs = 15_000

/**
 * Kills and removes a container with its volumes, until the engine does not know it any more. Idempotent.
 *
 * @throws TuttiError `unavailable` when the engine cannot be reached, or does not get it done within 15 s.
 */
export async function removeContainer(
  { docker, socketPath }: Engine,
  id: string,
  signal: AbortSignal,
): Promise<void> {
  const container = docker.getContainer(id)
  const end = performance.now() + limitMs
  for (;;) {
    throwIfCancelled(signal)
    try {
      const abortSignal = AbortSignal.any([signal, AbortSignal.timeout(limitMs)])
      // First, as Podman would wait for its own grace to end otherwise. Not running is what was wanted.
      await container.kill({ signal: 'SIGKILL', abortSignal }).catch(() => {})
      await container.remove({ force: true, v: true, abortSignal })
    } catch (thrown) {
      const status = statusOf(thrown)
      if (status === 404) return
      // Another caller is at it, or the engine has not noticed the end yet.
      const busy = status === 409 || status === 500
      if (!busy || performance.now() > end) throw engineError(thrown, 'remove a container', socketPath)
      await sleep(pollMs, undefined, { signal }).catch(() => {})
      continue
    }
    return
  }
}
