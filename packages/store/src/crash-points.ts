import { closeSync, fsyncSync, mkdirSync, openSync } from 'node:fs'
import { join } from 'node:path'
import type { CrashOrder, CrashPoint } from '@tutti/core'

/**
 * Obeys `TUTTI_CRASH_AT`: kills this process with SIGKILL right before or after the ordered step, at its n-th passing in this
 * process. It dies once per order and `stampDir` (the data folder): a stamp is durable before the process dies, so that the
 * restarted one passes.
 */
export function createCrashPoints({ order, stampDir }: { order: CrashOrder; stampDir: string }): CrashPoint {
  let passed = 0
  return async (name, step) => {
    const here = name === order.name && (passed += 1) === order.passing
    if (here && order.when === 'before' && stamp(order, stampDir)) await die()
    const result = await step()
    if (here && order.when === 'after' && stamp(order, stampDir)) await die()
    return result
  }
}

/** Whether this process made the stamp, so that of several that pass at once one dies. */
function stamp({ name, when, passing }: CrashOrder, folder: string): boolean {
  mkdirSync(folder, { recursive: true })
  try {
    sync(openSync(join(folder, `crashed-${name}-${when}-${passing}`), 'wx'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
  sync(openSync(folder, 'r'))
  return true
}

function sync(file: number): void {
  fsyncSync(file)
  closeSync(file)
}

/** SIGKILL cannot be handled, but it may take a moment: nothing goes on meanwhile. */
function die(): Promise<never> {
  process.kill(process.pid, 'SIGKILL')
  return new Promise(() => {})
}
