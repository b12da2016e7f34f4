import type { Clock } from '@tutti/core'
import type { HostSandboxProvider, Sandbox, SandboxRef } from './port.ts'

/** A timer takes no longer time than this, in milliseconds. */
const longestTimer = 2 ** 31 - 1

/**
 * The sandboxes of a provider, each with an end: it says when that is, and is ended then, whatever runs in it. Who works in one moves to
 * another before.
 *
 * @param lifeMs how long each lives, from its making, in milliseconds
 */
export function limitLife(real: HostSandboxProvider, lifeMs: number, clock: Clock): HostSandboxProvider {
  const ends = new Map<string, { readonly made: Sandbox; readonly limited: Sandbox; timer: NodeJS.Timeout }>()
  const forget = ({ id }: SandboxRef) => {
    clearTimeout(ends.get(id)?.timer)
    ends.delete(id)
  }
  const withEnd = (sandbox: Sandbox): Sandbox => {
    const { ref } = sandbox
    const there = ends.get(ref.id)
    if (there?.made === sandbox) return there.limited
    forget(ref)
    const at = clock.now() + lifeMs
    const wait = () =>
      setTimeout(
        () => {
          const end = ends.get(ref.id)
          if (end && clock.now() < at) end.timer = wait()
          else if (end) void destroy(ref, new AbortController().signal).catch(() => {})
        },
        Math.min(at - clock.now(), longestTimer),
      ).unref()
    const limited = { ...sandbox, expiresAt: at }
    ends.set(ref.id, { made: sandbox, limited, timer: wait() })
    return limited
  }
  const destroy: HostSandboxProvider['destroy'] = async (ref, signal) => {
    await real.destroy(ref, signal)
    forget(ref)
  }
  return {
    ...real,
    create: async (spec, signal) => withEnd(await real.create(spec, signal)),
    async attach(ref, signal) {
      const sandbox = await real.attach(ref, signal)
      return sandbox && withEnd(sandbox)
    },
    destroy,
    async reap(signal) {
      const gone = await real.reap(signal)
      for (const ref of gone) forget(ref)
      return gone
    },
  }
}
