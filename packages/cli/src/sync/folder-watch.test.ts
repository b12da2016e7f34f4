import { mkdirSync, mkdtempSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { watchFolder } from './folder-watch.ts'

test('what happens in a folder is told: in a new one, in one made anew, and in one that has come in the place of another', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tutti-folder-watch-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const at = (name: string) => join(folder, name)
  let told = 0
  const watcher = watchFolder(folder, () => void (told += 1))
  onTestFinished(() => watcher.close())
  async function isTold(work: () => void): Promise<void> {
    const before = told
    work()
    await expect.poll(() => told, { timeout: 10_000 }).toBeGreaterThan(before)
    // What the kernel has told of it is read by then, and is not taken for the next.
    for (let seen = -1; seen !== told;) {
      seen = told
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  await isTold(() => mkdirSync(at('a')))
  watcher.follow(['a'])
  await isTold(() => writeFileSync(at('a/x'), '1'))
  await isTold(() => mkdirSync(at('a/b')))
  watcher.follow(['a', 'a/b'])
  await isTold(() => writeFileSync(at('a/b/y'), '1'))

  mkdirSync(at('c/b'), { recursive: true })
  await isTold(() => renameSync(at('a'), at('moved')))
  await isTold(() => renameSync(at('c'), at('a')))
  watcher.follow(['a', 'a/b', 'moved', 'moved/b'])
  await isTold(() => writeFileSync(at('a/b/y'), '2'))

  await isTold(() => mkdirSync(at('flips')))
  watcher.follow(['a', 'a/b', 'flips'])
  await isTold(() => rmdirSync(at('flips')))
  await isTold(() => writeFileSync(at('flips'), 'a file'))
  watcher.follow(['a', 'a/b'])
  await isTold(() => rmSync(at('flips')))
  await isTold(() => mkdirSync(at('flips')))
  watcher.follow(['flips'])
  await isTold(() => writeFileSync(at('flips/z'), '1'))
})
