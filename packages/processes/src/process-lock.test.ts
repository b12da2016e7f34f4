import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { withProcessLock } from './process-lock.ts'

const never = new AbortController().signal
let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tutti-lock-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

test('the lock waits for another process and is free the moment that one is killed', async () => {
  const path = join(folder, 'lock')
  const held = join(folder, 'held')
  const script = `import { writeFileSync } from 'node:fs'
    import { withProcessLock } from ${JSON.stringify(new URL('process-lock.ts', import.meta.url).href)}
    await withProcessLock(${JSON.stringify(path)}, new AbortController().signal, async () => {
      writeFileSync(${JSON.stringify(held)}, 'yes')
      await new Promise((resolve) => setTimeout(resolve, 600_000))
    })`
  const holder = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'inherit' })
  try {
    await vi.waitFor(() => readFile(held), { timeout: 10_000 })
    await expect(
      withProcessLock(path, AbortSignal.timeout(100), () => Promise.resolve('too early')),
    ).rejects.toMatchObject({ code: 'cancelled' })
  } finally {
    holder.kill('SIGKILL')
  }
  expect(await withProcessLock(path, AbortSignal.timeout(5000), () => Promise.resolve('mine'))).toBe('mine')
})

test('the lock lets one in at a time, also within one process', async () => {
  let inside = 0
  const enter = () =>
    withProcessLock(join(folder, 'lock'), never, async () => {
      inside += 1
      expect(inside).toBe(1)
      await new Promise(setImmediate)
      inside -= 1
    })
  await Promise.all(Array.from({ length: 8 }, enter))
})
