import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { parseCrashOrder } from '@tutti/core'
import type { TuttiStack } from '@tutti/testkit'
import { expect } from 'vitest'

/**
 * A server that dies at the step, once; resolves when it is dead. It may be dead before it is ready.
 *
 * @param order as `TUTTI_CRASH_AT` takes it
 * @param meanwhile is asked of it, and may be interrupted by its death
 * @param env other settings of its
 */
export async function dieAt(
  stack: TuttiStack,
  order: string,
  meanwhile: () => Promise<void>,
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  const ready = await stack.start({ ...env, TUTTI_CRASH_AT: order }).catch(() => undefined)
  if (ready) {
    await unlessItDies(meanwhile)
    expect(await stack.ended()).toBeNull()
  }
  expectDied(stack, order)
}

/** As {@link dieAt}, for one role alone, with these settings: the others live on. */
export async function roleDiesAt(
  stack: TuttiStack,
  role: 'api' | 'worker',
  order: string,
  env: Readonly<Record<string, string>>,
  meanwhile: () => Promise<void>,
): Promise<void> {
  const process = await stack.serve(role, { ...env, TUTTI_CRASH_AT: order }).catch(() => undefined)
  if (process) {
    await unlessItDies(meanwhile)
    expect(await process.ended).toBeNull()
  }
  expectDied(stack, order)
}

/** As {@link dieAt}, for a command that ends by itself. */
export async function commandDiesAt(
  stack: TuttiStack,
  order: string,
  args: readonly string[],
): Promise<void> {
  const { code, stderr } = await stack.cli(args, { env: { TUTTI_CRASH_AT: order } }).done
  expect(code, stderr).toBeNull()
  expectDied(stack, order)
}

const unlessItDies = (work: () => Promise<void>) =>
  work().catch((error: { code?: string }) => expect(error.code).toBe('unavailable'))

function expectDied(stack: TuttiStack, order: string): void {
  const { name, when, passing } = parseCrashOrder(order)!
  expect(existsSync(join(stack.dataDir, 'crashed', `crashed-${name}-${when}-${passing}`))).toBe(true)
}
