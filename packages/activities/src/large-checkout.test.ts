import { afterEach, expect, test } from 'vitest'
import { captureNow, createTestHost, runInside, type TestHost } from './test-host.ts'

let host: TestHost | undefined
afterEach(async () => host?.remove())

/** So many that a thread hashes them while git still writes others. */
const count = 2500
const files = Object.fromEntries(
  Array.from({ length: count }, (_, at) => [`folder ${at % 50}/${at}`, `file ${at}\n`.repeat((at % 40) + 1)]),
)
const list = 'find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum'
/** Some changed, some gone, some new, one in the place of a folder; and more changed than one message can hold. */
const change = [
  'for at in 1 2 3; do echo changed > "folder $at/$at"; done',
  'rm "folder 4/4" && rm -r "folder 5" && echo flat > "folder 5"',
  'for at in $(seq 2200); do echo new > "folder 6/new $at"; done',
  'head -c 300000 /dev/urandom > "folder 7/large" && ln -sfn ../x "folder 7/link" && chmod +x "folder 8/8"',
].join(' && ')

test('a large checkout comes back to the byte, with a checkpoint and with changes after it', async () => {
  host = await createTestHost({ files, limits: { files: 20_000 } })
  let session = await host.provision(1)
  await captureNow(session)
  await host.checkpoint(session)
  for (const prepare of [async () => {}, () => host!.checkpoint(session)]) {
    await runInside(session, change)
    await captureNow(session)
    await prepare()
    const before = await runInside(session, list)
    const { manifestDigest } = await session.server.look(session.controller.signal)
    await host.lose(session)
    session = await host.provision(session.incarnation + 1)
    expect(await runInside(session, list)).toBe(before)
    expect((await host.events('sandbox')).at(-1)).toMatchObject({ state: 'ready', manifestDigest })
    await captureNow(session)
    expect((await session.server.look(session.controller.signal)).changes).toBe(0)
    await runInside(
      session,
      'mkdir -p "folder 4" && echo back > "folder 4/4" && rm "folder 5" && mkdir "folder 5"',
    )
  }
})
