import type { BlobStore } from '@tutti/blob-store'
import { noCrashPoints, TuttiError, type CrashPoint } from '@tutti/core'
import type { EventLog } from '@tutti/store'

/** Steps of the host at which something may be killed. */
export const faultSteps = [
  'blob',
  'append',
  'turn.checkpoint',
  'turn.checkpoint_event',
  'hydrate.workspace',
] as const

export interface Fault {
  readonly step: (typeof faultSteps)[number]
  /** At which passing of the step, counted from 1. */
  readonly passing: number
  readonly when: 'before' | 'after'
  /** `host`: from then on nothing of its comes through. `sandbox`: it alone is killed. */
  readonly kills: 'host' | 'sandbox'
}

/** For tests: stands between a host and its stores, and kills at an exact step. */
export interface FaultyPorts {
  readonly blobs: (real: BlobStore) => BlobStore
  readonly eventLog: (real: EventLog) => EventLog
  readonly crashPoint: CrashPoint
  arm(fault: Fault, killSandbox: () => Promise<void>): void
  /** A new host: everything comes through. @returns whether the fault came to pass */
  disarm(): boolean
}

export function createFaultyPorts(): FaultyPorts {
  let armed: { fault: Fault; kill: () => Promise<void>; passed: number } | undefined
  let struck = false
  let dead = false
  const fail = () => {
    throw new TuttiError('internal', 'This host is dead.')
  }
  const pass = async <T>(step: string, run: () => Promise<T>): Promise<T> => {
    if (dead) fail()
    if (!armed || armed.fault.step !== step || struck) return run()
    armed.passed += 1
    const { fault, kill, passed } = armed
    if (passed !== fault.passing) return run()
    struck = true
    if (fault.when === 'after') {
      const result = await run()
      if (fault.kills === 'sandbox') return kill().then(() => result)
      dead = true
      return fail()
    }
    if (fault.kills === 'sandbox') return kill().then(run)
    dead = true
    return fail()
  }
  return {
    blobs: (real) => ({
      ...real,
      put: (...args) => pass('blob', () => real.put(...args)),
      putAll: (...args) => pass('blob', () => real.putAll(...args)),
    }),
    eventLog: (real) => ({ ...real, append: (...args) => pass('append', () => real.append(...args)) }),
    crashPoint: (name, step) => pass(name, () => noCrashPoints(name, step)),
    arm(fault, kill) {
      armed = { fault, kill, passed: 0 }
      struck = false
    },
    disarm() {
      armed = undefined
      dead = false
      return struck
    },
  }
}
