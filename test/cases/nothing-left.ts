import type { TuttiStack } from '@tutti/testkit'
import { expect, vi } from 'vitest'

/** Waits until no process, mount or folder of a sandbox is left; fails with what there is after `withinMs`. */
export async function nothingLeft(stack: TuttiStack, withinMs = 5000): Promise<void> {
  await vi.waitFor(() => expect([...stack.sandboxProcesses(), ...stack.sandboxFiles()]).toEqual([]), {
    timeout: withinMs,
    interval: 50,
  })
}
