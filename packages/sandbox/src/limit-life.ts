import { longestTimer, type Clock } from '@tutti/core'
import type { HostSandboxProvider, Sandbox, SandboxRef } from './port.ts'

/** Until a sandbox that could not be ended is ended once more, in milliseconds. */
const againMs = 1000

interface End {
  /** One sandbox has one end, also when its provider gives it a second time. */
  readonly at: number
  readonly made: Sandbox
  readonly limited: Sandbox
  timer?: NodeJS.Timeout
}

/**
 * The sandboxes of a provider, each with an end: it says when that is, and is ended then, whatever runs in it. Who works in one moves to
 * another before.
 *
 * @param lifeMs how long each lives, from its making, in milliseconds
 */
export function limitLife(real: HostSandboxProvider, lifeMs: number, clock: Clock): HostSandboxProvider {
  const ends = new Map<string, End>()
  const forget = ({ id }: SandboxRef) => {
    clearTimeout(ends.get(id)?.timer)
    ends.delete(id)
  }
  const withEnd = (sandbox: Sandbox): Sandbox => {
    const { ref } = sandbox
    const there = ends.get(ref.id)
    if (there?.made === sandbox) return there.limited
    const at = there?.at ?? clock.now() + lifeMs
    forget(ref)
    const limited = { ...sandbox, expiresAt: at }
    const end: End = { at, made: sandbox, limited }
    const wait = (ms: number) => {
      end.timer = setTimeout(() => void look(), Math.min(ms, longestTimer)).unref()
    }
    const look = async () => {
      const left = at - clock.now()
      if (left > 0) return wait(left)
      await destroy(ref, new AbortController().signal).catch(() => {
        if (ends.get(ref.id) === end) wait(againMs)
      })
    }
    ends.set(ref.id, end)
    wait(at - clock.now())
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
