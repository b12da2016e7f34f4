import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { importTestImage, startPodman, type PodmanEngine, type TestImage } from '@tutti/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { describeDockerSandbox } from './describe-docker-sandbox.ts'
import { createTestSubject, never, type TestSubject } from './test-subject.ts'

declare module 'vitest' {
  interface ProvidedContext {
    engineMissing: string
  }
}

const why = inject('engineMissing')

describe.skipIf(why !== '')(`images that cannot be used ${why}`, () => {
  let engine: PodmanEngine
  let subject: TestSubject | undefined
  const refusal = async (image: string): Promise<unknown> => {
    subject = createTestSubject({ image, socketPath: engine.socketPath })
    return subject.run('true').then(
      () => 'it runs',
      (error: unknown) => error,
    )
  }
  const describeImage = async (image: string) => {
    const root = mkdtempSync(join(tmpdir(), 'tutti-docker-'))
    onTestFinished(() => rmSync(root, { recursive: true }))
    return describeDockerSandbox({ root, nodePath: process.execPath, image, socketPath: engine.socketPath })
  }
  beforeAll(async () => {
    engine = await startPodman()
  })
  afterEach(async () => {
    // Neither a sandbox nor the container that tried the image.
    expect(await engine.podman('ps', '--all', '--quiet')).toBe('')
    expect(subject?.folders() ?? []).toEqual([])
    await subject?.dispose()
    subject = undefined
  })
  afterAll(async () => {
    await engine?.dispose()
  })

  const cases: readonly [TestImage, RegExp][] = [
    ['withoutGit', /has no git \(.*not found\)\. To mend it: add git/],
    ['withoutGlibc', /Node does not start in it \(.*not found\)\. To mend it: .*glibc.*libatomic1/],
    ['withoutShell', /has no \/bin\/sh\. To mend it: .*shell/],
  ]
  test.each(cases)('%s: the error names the image, what is missing and what to do', async (name, message) => {
    const image = await importTestImage(engine, name)
    const error = await refusal(image)
    expect(error).toMatchObject({
      code: 'failed_precondition',
      detail: { image },
      message: expect.stringMatching(message) as string,
    })
    expect(String(error)).toContain(image)
    // In the same words, for doctor.
    const { engine: found, image: usable, problem } = await describeImage(image)
    expect(found).toMatchObject({ kind: 'podman', socketPath: engine.socketPath })
    expect(usable).toBeUndefined()
    expect(problem).toMatch(message)
  })

  test('one that can be used is described with what it has', async () => {
    const image = await importTestImage(engine, 'complete')
    const version = expect.stringMatching(/^2\.\d+/) as string
    const described = await describeImage(image)
    expect(described.image).toEqual({ name: image, git: version, glibc: version })
    expect(described.problem).toBeUndefined()
  })

  test('a missing one is not fetched, and the error has the command that does', async () => {
    expect(await refusal('localhost/missing:1')).toMatchObject({
      code: 'failed_precondition',
      message: expect.stringContaining('podman pull localhost/missing:1') as string,
    })
  })

  test('one that cannot be fetched says why', async () => {
    subject = createTestSubject({
      image: '127.0.0.1:9/missing:1',
      socketPath: engine.socketPath,
      pull: 'missing',
    })
    await expect(subject.run('true')).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/fetch the image 127\.0\.0\.1:9\/missing:1.*refused/s) as string,
    })
  })

  test('one that can be used keeps its users, its PATH and its variables; its volumes are small and leave nothing', async () => {
    const image = await importTestImage(engine, 'complete', [
      'ENV PATH=/opt/tools:/usr/bin:/bin',
      'ENV GIVEN=by-image',
      'VOLUME ["/data", "/workspace"]',
    ])
    const line = 'cat /etc/passwd; echo "$PATH $GIVEN"; touch /data/x && stat -f -c %T /data; pwd; ls -A'
    const running = await createSubject(image).run(line)
    expect((await running.exit).code).toBe(0)
    const passwd = 'agent:x:1000:1000:agent:/home/agent:/bin/sh\n'
    expect(running.output()).toBe(
      `${passwd}/opt/tools:/usr/bin:/bin:/opt/node/bin by-image\ntmpfs\n/workspace\n`,
    )
    await subject!.provider.destroy(running.sandbox.ref, never)
    expect(await engine.podman('volume', 'ls', '--quiet')).toBe('')
  })

  const createSubject = (image: string) =>
    (subject = createTestSubject({ image, socketPath: engine.socketPath }))
})
