var e="./readyz?status=200";function t({status:r}){return r==="ready"||r==="restarting"}export{e as a,t as b};
