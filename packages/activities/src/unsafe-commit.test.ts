import { afterEach, expect, test } from 'vitest'
import { captureNow, createTestHost, runInside, type TestHost } from './test-host.ts'

let host: TestHost
afterEach(async () => host?.remove())

/** A submodule whose update is a command: git refuses to read such a commit from others. */
const unsafeModules = String.raw`printf '[submodule "m"]\n\tpath = m\n\turl = ./m\n\tupdate = !sh -c true\n' > .gitmodules`
const subjects = async () => (await host.events('git_commit')).map(({ message }) => message.trim())
const states = async () => (await host.events('git_state')).map(({ head }) => head)

test('SEC-03 a commit that git finds unsafe is told of, and is in no event and no recovery; its files are', async () => {
  host = await createTestHost({ files: { x: 'x' } })
  const first = await host.provision(1)
  await runInside(first, 'echo 1 > x; git commit -qam safe')
  await captureNow(first)
  expect(await subjects()).toEqual(['safe'])

  const head = () => runInside(first, 'git rev-parse HEAD')
  const safe = await head()
  await runInside(first, `${unsafeModules}; git add .gitmodules; git commit -qm unsafe`)
  const unsafe = await head()
  await captureNow(first)
  expect(await host.events('file_skipped')).toEqual([
    { type: 'file_skipped', incarnation: 1, path: '.git', reason: 'unsafe_object' },
  ])
  expect(await subjects()).toEqual(['safe'])
  expect(await states()).toEqual([safe])

  await host.checkpoint(first)
  await host.lose(first)
  const second = await host.provision(2)
  expect((await host.events('recovery')).at(-1)).toMatchObject({
    proven: true,
    missing: [{ path: '.git', reason: 'unsafe_object' }],
  })
  expect(
    await runInside(
      second,
      `git log --format=%s; git status --porcelain; grep -c '!sh' .gitmodules; git cat-file -e ${unsafe} 2> /dev/null || echo unknown`,
    ),
  ).toBe('safe\nstart\n?? .gitmodules\n1\nunknown')

  // What comes without it is taken again.
  await runInside(second, 'rm .gitmodules; git commit -q --allow-empty -m later')
  await captureNow(second)
  expect(await subjects()).toEqual(['safe', 'later'])
})
