import { createHash } from 'node:crypto'
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectFiles } from './inside/vanished-files.ts'
import { createTestBench, never, recordCapture, shell, type TestBench } from './test-sandbox.ts'

let bench: TestBench

beforeAll(async () => {
  bench = await createTestBench((folder) => {
    for (const name of ['a', 'b', 'c', 'd', 'e']) writeFileSync(join(folder, name), name)
  })
})
afterAll(() => bench.dispose())

/** A sandbox, and its workspace as the host sees it. */
async function hydrated() {
  const { server } = await bench.start()
  await server.hydrate(
    { commit: bench.commit, branch: 'work', changes: [], contentOf: () => [] as never },
    never,
  )
  const [workspace] = readdirSync(join(bench.folder, 'sandboxes'), {
    recursive: true,
    encoding: 'utf8',
  }).filter(
    (path) => path.endsWith('/workspace') && readdirSync(join(bench.folder, 'sandboxes', path)).includes('a'),
  )
  const remove = (...names: string[]) => {
    for (const name of names) rmSync(join(bench.folder, 'sandboxes', workspace!, name))
  }
  return { server, remove }
}

test('files that vanish while nothing runs are no deletions of the agent’s: the sandbox is lost', async () => {
  const { server, remove } = await hydrated()
  remove('a', 'b')
  const few = recordCapture()
  await server.capture(few.sink, never)
  expect(few.changes.map(({ action }) => action)).toEqual(['deleted', 'deleted'])
  remove('c', 'd')
  const many = recordCapture()
  await expect(server.capture(many.sink, never)).rejects.toThrow(/gone/)
  expect(many.changes).toEqual([])
  expect(await server.lost).toContain('2 of 3 files are gone from the workspace, and nothing ran in it')
})

test('files that are back at the second look count as what it found', async () => {
  const back = { files: new Set(['a', 'b', 'c', 'new']) }
  const found = await expectFiles(['a', 'b', 'c'], { files: new Set<string>() }, async () => back, never)
  expect(found).toBe(back)
})

test('what the agent removes is removed, also by a process that it left behind', async () => {
  const { server } = await hydrated()
  await shell(server, 'rm a b c d')
  const first = recordCapture()
  await server.capture(first.sink, never)
  expect(first.changes).toHaveLength(4)
  await shell(server, '(setsid sh -c "while [ ! -e go ]; do sleep 0.01; done; rm e go" >/dev/null 2>&1 &)')
  await server.capture(recordCapture().sink, never)
  await server.writeFile('go', Buffer.from(''), never)
  while (await server.hasProcesses(never)) await new Promise((resolve) => setTimeout(resolve, 10))
  const last = recordCapture()
  await server.capture(last.sink, never)
  expect(last.changes.map(({ action }) => action)).toEqual(['deleted'])
})

test('what the agent has removed stays removed when its capture could not be taken, and so does what a file of the user’s replaces', async () => {
  const { server } = await hydrated()
  await shell(server, 'rm a b c d')
  const failing = { ...recordCapture().sink, committed: () => Promise.reject(new Error('no room')) }
  await expect(server.capture(failing, never)).rejects.toThrow('no room')
  const again = recordCapture()
  await server.capture(again.sink, never)
  expect(again.changes).toHaveLength(4)

  await shell(server, 'rm e; mkdir -p f; for i in 1 2 3; do echo $i > f/$i; done')
  await server.capture(recordCapture().sink, never)
  const content = Buffer.from('the user’s')
  const hash = `sha256_${createHash('sha256').update(content).digest('hex')}` as const
  const state = {
    path: Buffer.from('f'),
    fileType: 'file',
    mode: '100644',
    size: content.length,
    hash,
  } as const
  const contentOf = async function* () {
    yield content
  }
  const synced = recordCapture()
  await server.sync({ changes: [{ action: 'created', state }], contentOf }, synced.sink, never)
  expect(synced.changes.map(({ action }) => action)).toEqual(['deleted', 'deleted', 'deleted'])
})
