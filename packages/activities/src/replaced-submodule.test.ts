import { afterEach, expect, test } from 'vitest'
import { makeBase } from './byte-identity/make-base.ts'
import { captureNow, createTestHost, runInside, type TestHost } from './test-host.ts'

let host: TestHost | undefined
afterEach(async () => host?.remove())

const look = 'ls -ld lib | cut -c1; ls -A lib; git status --porcelain; true'

test.each([
  ['its folder comes back', 'git reset -q --hard'],
  [
    'the whole submodule comes back',
    'git reset -q --hard && git -c protocol.file.allow=always submodule --quiet update --init',
  ],
  ['nothing takes its place', 'rm lib'],
])('a link in the place of a submodule goes again, and %s', async (_, end) => {
  for (const checkpoints of [[], ['link'], ['end'], ['link', 'end']]) {
    host = await createTestHost({ files: { a: 'a' }, prepare: makeBase })
    let session = await host.provision(1)
    const step = async (name: string, line: string) => {
      await runInside(session, line)
      await captureNow(session)
      if (checkpoints.includes(name)) await host!.checkpoint(session)
    }
    await step('link', 'rm -r lib; ln -s x lib')
    await step('end', end)
    const before = await runInside(session, look)
    for (const incarnation of [2, 3]) {
      await host.lose(session)
      session = await host.provision(incarnation)
      expect(await runInside(session, look), `checkpoints: ${checkpoints.join(' ')}`).toBe(before)
    }
    await host.remove()
    host = undefined
  }
})
