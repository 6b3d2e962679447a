// Made by tools/generate.mjs of the OpenAPI document. Not to be edited.
export {};
