import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder } from '../../packages/temporal-binary/src/index.mjs'

/**
 * The two servers that the S3 adapter is tested on: an emulator that checks everything, and a gateway that people run.
 *
 * @typedef {object} S3ServerProgram
 * @property {'ministack' | 'versitygw'} name
 * @property {string} version     pinned: every machine tests what was tested here
 * @property {string} file        what is in its folder when it is installed
 * @property {readonly [string, ...string[]]} test what answers where it can be installed
 * @property {string} needs       for a person who lacks that
 * @property {(folder: string) => readonly [string, ...string[]]} install a command that brings it into this folder
 */

/** @type {readonly S3ServerProgram[]} */
export const s3ServerPrograms = [
  {
    name: 'ministack',
    version: '1.5.33',
    file: 'ministack',
    test: ['python3', '-m', 'pip', '--version'],
    needs: 'python3 with pip (Debian and Ubuntu: sudo apt-get install python3-pip)',
    // Into a folder and not into a virtual environment: that could not be moved to its place when it is complete.
    install: (folder) => [
      'python3',
      '-m',
      'pip',
      'install',
      '--quiet',
      '--target',
      folder,
      'ministack==1.5.33',
    ],
  },
  {
    name: 'versitygw',
    version: '1.8.0',
    file: 'versitygw',
    test: ['go', 'version'],
    needs: 'Go 1.25 or newer (https://go.dev; Mac: brew install go)',
    // A minute of both processors, while other things run.
    install: () => ['nice', 'go', 'install', 'github.com/versity/versitygw/cmd/versitygw@v1.8.0'],
  },
]

/** @param {S3ServerProgram} program @param {NodeJS.ProcessEnv} env */
export function s3ServerFolder({ name, version }, env) {
  return join(cacheFolder(env), 's3', `${name}-${version}-${process.platform}-${process.arch}`)
}

/**
 * Looks where {@link import('./ensure-s3-servers.mjs').ensureS3Servers} puts them; installs nothing.
 *
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {{paths: Record<'ministack' | 'versitygw', string | null>, missing: string}} `missing` is why one is null
 */
export function findS3Servers(env = process.env) {
  const places = s3ServerPrograms.map((program) => {
    const path = join(s3ServerFolder(program, env), program.file)
    return { ...program, path: existsSync(path) ? path : null }
  })
  const absent = places.filter(({ path }) => path === null)
  const path = (/** @type {string} */ name) => places.find((place) => place.name === name)?.path ?? null
  return {
    paths: { ministack: path('ministack'), versitygw: path('versitygw') },
    missing: absent
      .map(
        ({ name, version, needs }) => `${name} ${version} is not installed: \`npm test\` does, with ${needs}`,
      )
      .join('; '),
  }
}
