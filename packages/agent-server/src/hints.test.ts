import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { changePath, changedFile } from '@tutti/workspace'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { AgentServer } from './port.ts'
import { createTestBench, never, recordCapture, shell, type TestBench } from './test-sandbox.ts'

let bench: TestBench

beforeAll(async () => {
  bench = await createTestBench((folder) => {
    writeFileSync(join(folder, '.gitignore'), '*.log\n')
    mkdirSync(join(folder, 'src'))
    writeFileSync(join(folder, 'src', 'a.ts'), 'a\n')
    writeFileSync(join(folder, 'src', 'b.ts'), 'b\n')
  })
})
afterAll(() => bench.dispose())

const eventually = (look: () => void) => vi.waitFor(look, { timeout: 20_000, interval: 20 })

/** A sandbox with everything that hints have brought so far. */
async function watched() {
  const { server } = await bench.start()
  await server.hydrate(
    { commit: bench.commit, branch: 'work', changes: [], contentOf: () => [] as never },
    never,
  )
  const found: string[] = []
  let hints = 0
  server.hints(() => {
    hints += 1
    void capture(server, 'captureHinted').then((paths) => found.push(...paths))
  }, never)
  return { server, found, hints: () => hints }
}

async function capture(server: AgentServer, by: 'capture' | 'captureHinted'): Promise<string[]> {
  const recorded = recordCapture()
  await server[by](recorded.sink, never)
  return recorded.changes.map((change) => {
    const file = changedFile(change)
    const content = file ? recorded.contents.get(file.hash)!.toString().trim() : ''
    return `${change.action} ${Buffer.from(changePath(change)).toString('latin1')} ${content}`.trim()
  })
}

test('a saved file is captured by itself, and the whole capture after it has nothing more to say of it', async () => {
  const { server, found } = await watched()
  await shell(server, 'echo 1 > src/a.ts; echo new > src/c.ts; ln -s a.ts src/l')
  await eventually(() =>
    expect(found.sort()).toEqual(['created src/c.ts new', 'created src/l a.ts', 'modified src/a.ts 1']),
  )
  // As editors save: the file beside it is gone before anyone looks.
  await shell(server, 'echo 2 > src/.b.tmp && mv src/.b.tmp src/b.ts')
  await eventually(() => expect(found).toContain('modified src/b.ts 2'))
  const besides = (line: string) => !line.includes('.b.tmp')
  expect(found.filter(besides)).toHaveLength(4)
  expect((await capture(server, 'capture')).filter(besides)).toEqual([])
})

test('what a walk must decide is left to it: deletions, new folders, ignored files, files in place of folders', async () => {
  const { server, found, hints } = await watched()
  await shell(
    server,
    'rm src/b.ts; mkdir -p new && echo n > new/n; echo log > x.log; mkdir -p empty; echo "*.tmp" >> .gitignore; echo t > y.tmp',
  )
  await eventually(() => expect(hints()).toBeGreaterThan(0))
  await shell(server, 'echo done > src/done')
  await eventually(() => expect(found).toContain('created src/done done'))
  // y.tmp was not ignored by the rules of the last walk; the next one takes it for ignored.
  expect(found.filter((line) => !line.includes('y.tmp'))).toEqual(['created src/done done'])
  const whole = await capture(server, 'capture')
  for (const line of [
    'deleted src/b.ts',
    'created new/n n',
    'created empty',
    'modified .gitignore *.log\n*.tmp',
  ])
    expect(whole).toContain(line)
  expect(whole).not.toContain('created src/done done')
  await shell(server, 'rm -r src; echo file > src; echo e > empty/e')
  const after = await capture(server, 'captureHinted')
  expect(after).toEqual([])
  expect(await capture(server, 'capture')).toContain('created src file')
})

test('hints and whole captures together give the digest of a walk', async () => {
  const { server, found } = await watched()
  await shell(server, 'echo 3 > src/a.ts; echo 4 > src/d.ts')
  await eventually(() => expect(found).toHaveLength(2))
  const hinted = await server.captureHinted(recordCapture().sink, never)
  const whole = await server.capture(recordCapture().sink, never)
  expect(hinted).toEqual(whole)
})

test('a file that is written again and again does not keep the capture busy', async () => {
  const { server, found } = await watched()
  await shell(server, 'for i in $(seq 1 200); do echo $i > src/a.ts; sleep 0.005; done')
  expect(found.length).toBeLessThan(50)
})
