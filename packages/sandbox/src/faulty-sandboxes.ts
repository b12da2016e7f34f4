import type { Sandbox, SandboxProvider, SandboxRef, SandboxSpec } from './port.ts'

/** What may go wrong with sandboxes that somebody else runs. Read each time, so that a test can change its mind. */
export interface SandboxFaults {
  /** How long a sandbox lives, in milliseconds; then it is ended, whatever it does. */
  lifeMs?: number
  /** Nobody is told when that will be. */
  unannounced?: boolean
  /** `attach` says that it has the sandbox, and gives one whose disk is empty. */
  resumesEmpty?: boolean
}

/** For tests: a real provider whose sandboxes have these faults. Everything else is the real one's. */
export function createFaultySandboxes(real: SandboxProvider, faults: SandboxFaults): SandboxProvider {
  const specs = new Map<string, SandboxSpec>()
  const resumed = new Map<string, SandboxRef>()
  const known = new WeakMap<Sandbox, Sandbox>()
  const faulty = (sandbox: Sandbox): Sandbox => {
    const there = known.get(sandbox)
    if (there) return there
    const { lifeMs, unannounced = false } = faults
    const made: Sandbox = {
      ...sandbox,
      ...(lifeMs !== undefined && !unannounced && { expiresAt: Date.now() + lifeMs }),
    }
    known.set(sandbox, made)
    if (lifeMs !== undefined) {
      const end = () => void real.destroy(sandbox.ref, new AbortController().signal).catch(() => {})
      setTimeout(end, lifeMs).unref()
    }
    return made
  }
  return {
    ...real,
    async create(spec, signal) {
      specs.set(spec.key, spec)
      return faulty(await real.create(spec, signal))
    },
    async attach(ref, signal) {
      const spec = specs.get(ref.key)
      if (faults.resumesEmpty && spec) {
        const empty = await real.create({ ...spec, key: `${spec.key}/resumed` }, signal)
        resumed.set(ref.key, empty.ref)
        return { ...empty, ref }
      }
      const sandbox = await real.attach(ref, signal)
      return sandbox && faulty(sandbox)
    },
    async destroy(ref, signal) {
      await real.destroy(ref, signal)
      const empty = resumed.get(ref.key)
      if (empty) await real.destroy(empty, signal)
    },
  }
}
